//! Opens and reads the database of another program, of any supported kind.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::dump::Dump;
use super::error::ForeignError;
use super::postgres::ForeignServer;
use super::sqlite::ForeignFile;
use super::table::ForeignTable;

const SQLITE_HEAD: &[u8; 16] = b"SQLite format 3\0";

/// A database of another program, read as of one instant.
#[derive(Debug)]
pub enum ForeignDatabase {
    Sqlite(ForeignFile),
    Postgres(ForeignServer),
    Dump(Dump),
}

impl ForeignDatabase {
    /// Opens a `postgres://…` URL, a `SQLite` file, or a dump of `MySQL`. Only `tables` can be read afterwards.
    pub async fn open(place: &str, tables: &[&'static str]) -> Result<Self, ForeignError> {
        if place.starts_with("postgres://") || place.starts_with("postgresql://") {
            return Ok(Self::Postgres(ForeignServer::connect(place).await?));
        }
        let path = PathBuf::from(place.strip_prefix("sqlite:").unwrap_or(place));
        if begins_like_sqlite(&path)? {
            return Ok(Self::Sqlite(ForeignFile::open(&path)?));
        }
        Ok(Self::Dump(Dump::read(&path, tables)?))
    }

    /// Reads a table, with the given columns that exist. `None` if the table does not exist.
    pub async fn table(
        &self,
        name: &'static str,
        columns: &[&str],
    ) -> Result<Option<ForeignTable>, ForeignError> {
        match self {
            Self::Sqlite(file) => file.table(name, columns),
            Self::Postgres(server) => server.table(name, columns).await,
            Self::Dump(dump) => Ok(dump.table(name, columns)),
        }
    }
}

fn begins_like_sqlite(path: &Path) -> Result<bool, ForeignError> {
    let failed = |source| ForeignError::File {
        path: path.to_owned(),
        source,
    };
    let mut head = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(SQLITE_HEAD.len() as u64)
        .read_to_end(&mut head)
        .map_err(failed)?;
    Ok(head == SQLITE_HEAD)
}
