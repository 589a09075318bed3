//! Errors from transferring a store.

use std::path::{Path, PathBuf};

use crate::error::OpenError;
use crate::verify::VerifyReport;

/// Errors from a transfer. The contents of the source are unchanged. A destination to which something was copied cannot
/// be opened until the transfer is complete.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// One of the databases could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// There is nothing to transfer.
    #[error("{place}: there is no store here")]
    Missing { place: String },
    /// Source and destination are the same.
    #[error("{place}: the source and the destination are the same")]
    SamePlace { place: String },
    /// A server uses the database.
    #[error("{place}: a server is running here{detail}; stop it first")]
    Running { place: String, detail: String },
    /// Another transfer writes to the destination.
    #[error("{place}: another move, backup or restore is writing here")]
    Busy { place: String },
    /// The destination contains other rows.
    #[error("{place}: the destination is not empty: it has rows in {tables}")]
    NotEmpty { place: String, tables: String },
    /// The destination contains a part of another transfer.
    #[error(
        "{place}: an unfinished move from another source is here, or the source was used since it was begun; \
         empty the destination and begin again"
    )]
    OtherSource { place: String },
    /// The verification of the ledger found differences.
    #[error("{place}: `ledger verify` finds {} differences", report.differences.len())]
    Unclean {
        place: String,
        report: Box<VerifyReport>,
    },
    /// The copy differs from its source.
    #[error("the copy differs from its source: {0}")]
    Differs(String),
    /// The destination cannot store a text of the ledger without changing it, which is not allowed.
    #[error(
        "{table}: a text in column {column} has a NUL character, which PostgreSQL cannot store"
    )]
    Text {
        table: &'static str,
        column: &'static str,
    },
    /// A database rejected a statement or became unavailable. The same command continues the transfer.
    #[error("{place}: {source}")]
    Database {
        place: String,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A file or folder exists where the transfer would write one.
    #[error("{path}: exists already, and nothing is overwritten", path = path.display())]
    Exists { path: PathBuf },
    /// The folder is not a complete backup.
    #[error("{path}: is not a complete backup: {reason}", path = path.display())]
    NoBackup { path: PathBuf, reason: String },
    /// The file system reported an error.
    #[error("{path}: {source}", path = path.display())]
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
}

impl TransferError {
    /// Converts a file system error at this path.
    pub(crate) fn io(path: &Path) -> impl Fn(std::io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io {
            path: path.clone(),
            source,
        }
    }
}
