//! Where durable state lies.

use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::de::DeValue;

use crate::config::document::{SecretSource, Section, read_source, value};

/// `[store]`: where wallets, keys, the ledger and the journal lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    /// Which database.
    pub url: StoreUrl,
    /// The password of a `PostgreSQL` server.
    pub password: Option<SecretSource>,
    /// Certificates that vouch for a `PostgreSQL` server, beside the public ones.
    pub ca_file: Option<PathBuf>,
    /// How long a node that falls silent keeps its holds.
    pub lease: Duration,
    /// Free bytes of the disk below which no call is admitted.
    pub disk_floor_bytes: u64,
}

/// A database as `store.url` names it.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// The file of the embedded database.
    File(PathBuf),
    /// A `PostgreSQL` server.
    Server(String),
}

impl StoreUrl {
    /// The place as it may be shown.
    pub fn shown(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Server(url) => store::Server::at(url).shown(),
        }
    }
}

// A URL may hold a password.
impl std::fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown())
    }
}

impl Default for Store {
    fn default() -> Self {
        Self {
            url: StoreUrl::File(PathBuf::from("tollgate-data/tollgate.db")),
            password: None,
            ca_file: None,
            lease: Duration::from_secs(20),
            disk_floor_bytes: 512 * 1024 * 1024,
        }
    }
}

impl Store {
    pub(crate) fn read(mut section: Section<'_, '_, '_>, folder: &Path) -> Self {
        let mut out = Self::default();
        section.set("url", &mut out.url, store_url);
        if let StoreUrl::File(path) = &mut out.url {
            *path = folder.join(&path);
        }
        out.password = read_source(&mut section, "password", folder);
        let ca_file = section.value("ca_file", value::text);
        out.ca_file = ca_file.map(|file| folder.join(file));
        section.set("lease_ms", &mut out.lease, lease);
        section.set("disk_floor_bytes", &mut out.disk_floor_bytes, value::count);
        section.end();
        out
    }
}

/// Shorter leases would be lost to an ordinary hiccup of the network.
fn lease(raw: &DeValue<'_>) -> Result<Duration, String> {
    let lease = value::millis(raw)?;
    if lease < Duration::from_secs(1) || lease > Duration::from_secs(600) {
        return Err("must be between 1000 and 600000".to_owned());
    }
    Ok(lease)
}

fn store_url(raw: &DeValue<'_>) -> Result<StoreUrl, String> {
    let url = value::text(raw)?;
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        return match store::Server::at(&url).check() {
            Ok(()) => Ok(StoreUrl::Server(url)),
            Err(reason) => Err(format!("is no usable PostgreSQL URL: {reason}")),
        };
    }
    let path = url
        .strip_prefix("sqlite:")
        .map(|rest| rest.strip_prefix("//").unwrap_or(rest))
        .ok_or("must be sqlite:PATH or postgres://USER@HOST/DATABASE")?;
    if path.is_empty() || path == ":memory:" || path.ends_with('/') {
        return Err("must name a file, such as sqlite:tollgate-data/tollgate.db".to_owned());
    }
    Ok(StoreUrl::File(PathBuf::from(path)))
}
