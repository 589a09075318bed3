//! The errors of media storage.

use std::io;
use std::path::PathBuf;

/// Errors from opening the media storage.
#[derive(Debug, thiserror::Error)]
pub enum MediaOpenError {
    /// A folder cannot be created or written to.
    #[error("{path}: {source}", path = path.display())]
    Folder { path: PathBuf, source: io::Error },
    /// The settings of a bucket are invalid.
    #[error("the bucket cannot be used: {0}")]
    Bucket(String),
}

/// Errors from a media operation. A retry may succeed later, except after `TooLarge`. A missing file is not an error.
#[derive(Debug, thiserror::Error)]
pub enum MediaError {
    /// There is too little disk space.
    #[error("the disk is full")]
    Full,
    /// The file exceeds its limit.
    #[error("the file is larger than {0} bytes")]
    TooLarge(u64),
    /// The storage did not answer in time.
    #[error("the media storage does not answer")]
    Timeout,
    /// The file system reported an error.
    #[error("the media folder refused: {0}")]
    File(#[source] io::Error),
    /// The storage rejected the request, or cannot be reached.
    #[error("the media storage refused: {0}")]
    Storage(#[source] Box<object_store::Error>),
    /// The storage delivered more or fewer bytes than it had announced, or other bytes than were stored.
    #[error("the media storage broke off")]
    Short,
}

impl From<io::Error> for MediaError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            _ => Self::File(error),
        }
    }
}

impl From<object_store::Error> for MediaError {
    fn from(error: object_store::Error) -> Self {
        Self::Storage(Box::new(error))
    }
}
