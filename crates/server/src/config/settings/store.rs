//! Where durable state lies.

use std::path::{Path, PathBuf};

use toml::de::DeValue;

use super::super::tree::Section;
use super::super::value;

/// `[store]`: where wallets, keys, the ledger and the journal lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    /// The file of the embedded database.
    pub path: PathBuf,
    /// Free bytes of the disk below which no call is admitted.
    pub disk_floor_bytes: u64,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            path: PathBuf::from("tollgate-data/tollgate.db"),
            disk_floor_bytes: 512 * 1024 * 1024,
        }
    }
}

impl Store {
    pub(in super::super) fn read(mut section: Section<'_, '_, '_>, folder: &Path) -> Self {
        let mut out = Self::default();
        section.set("url", &mut out.path, sqlite_path);
        out.path = folder.join(out.path);
        section.set("disk_floor_bytes", &mut out.disk_floor_bytes, value::count);
        section.end();
        out
    }
}

fn sqlite_path(raw: &DeValue<'_>) -> Result<PathBuf, String> {
    let url = value::text(raw)?;
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        return Err("PostgreSQL is not built into this version; use sqlite:PATH".to_owned());
    }
    let path = url
        .strip_prefix("sqlite:")
        .map(|rest| rest.strip_prefix("//").unwrap_or(rest))
        .ok_or("must be sqlite:PATH")?;
    if path.is_empty() || path == ":memory:" || path.ends_with('/') {
        return Err("must name a file, such as sqlite:tollgate-data/tollgate.db".to_owned());
    }
    Ok(PathBuf::from(path))
}
