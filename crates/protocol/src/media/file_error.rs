//! Errors of the file checks.

use std::io;

/// An error from the check of a file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file could not be read, so nothing is known about it.
    #[error("the file could not be read: {0}")]
    Unreadable(#[from] io::Error),
    /// The file was read, and is not valid.
    #[error(transparent)]
    Invalid(#[from] Invalid),
}

/// The defect of an invalid file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    #[error("the file does not begin as one of its type does")]
    Start,
    #[error("the file is of a type that is not served")]
    Brand,
    #[error("a part of the file is cut off")]
    Truncated,
    #[error("a part of the file has a size that cannot be")]
    Size,
    #[error("the file has more parts than are read")]
    TooMany,
    #[error("the parts of the file stand in one another too deep")]
    TooDeep,
    #[error("the description of the video is larger than is read")]
    TooLarge,
    #[error("a part that must be there is missing: {0}")]
    Missing(&'static str),
    #[error("a part that may be there once is there again: {0}")]
    Twice(&'static str),
    #[error("a header cannot be: {0}")]
    Header(&'static str),
    #[error("a checksum is wrong")]
    Checksum,
    #[error("something follows the end")]
    After,
}
