//! Errors from reading the database of another program.

use std::io;
use std::path::PathBuf;

/// Errors from reading the database of another program.
#[derive(Debug, thiserror::Error)]
pub enum ForeignError {
    /// The file cannot be opened or read.
    #[error("{path}: {source}", path = path.display())]
    File { path: PathBuf, source: io::Error },
    /// The contents of the file are not as expected.
    #[error("{path}: {reason}", path = path.display())]
    Form { path: PathBuf, reason: String },
    /// The database rejected the query.
    #[error("{place}: {source}")]
    Database {
        place: String,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
