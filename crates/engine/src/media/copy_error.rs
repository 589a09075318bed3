//! The errors of copying media, and whether a retry can help.

use protocol::media::{FileError, Invalid};
use store::MediaError;
use upstream::FetchError;

/// A failed copy. No file is left behind.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CopyError {
    /// The medium could not be fetched or stored, but a retry may succeed.
    #[error("{0}")]
    Retryable(String),
    /// There is no file at this URL, or not yet. The upstream may return another URL.
    #[error("{0}")]
    StaleUrl(String),
    /// The file is too large or not valid for its kind, or its URL is not allowed. A retry does not
    /// help.
    #[error("{0}")]
    Invalid(String),
}

impl CopyError {
    /// The label in metrics.
    pub(super) fn label(&self) -> &'static str {
        match self {
            Self::Retryable(_) => "later",
            Self::StaleUrl(_) => "stale",
            Self::Invalid(_) => "unfit",
        }
    }
}

impl From<FetchError> for CopyError {
    fn from(error: FetchError) -> Self {
        let text = error.to_string();
        match error {
            FetchError::Refused(_) | FetchError::TooLarge(_) => Self::Invalid(text),
            // The server is overloaded, asks us to wait, or cannot be reached.
            FetchError::Status(408 | 425 | 429 | 500..)
            | FetchError::Unresolved
            | FetchError::Call(_) => Self::Retryable(text),
            FetchError::Status(_) | FetchError::Redirects => Self::StaleUrl(text),
        }
    }
}

impl From<MediaError> for CopyError {
    fn from(error: MediaError) -> Self {
        match error {
            MediaError::TooLarge(_) => Self::Invalid(error.to_string()),
            error => Self::Retryable(error.to_string()),
        }
    }
}

impl From<FileError> for CopyError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Unreadable(error) => Self::Retryable(error.to_string()),
            FileError::Invalid(bad) => bad.into(),
        }
    }
}

impl From<Invalid> for CopyError {
    fn from(bad: Invalid) -> Self {
        Self::Invalid(bad.to_string())
    }
}

#[cfg(test)]
mod tests {
    use upstream::UrlRefusal;

    use super::*;

    #[test]
    fn what_may_help_follows_from_what_went_wrong() {
        for (error, label) in [
            (FetchError::Refused(UrlRefusal::Address), "unfit"),
            (FetchError::TooLarge(1), "unfit"),
            (FetchError::Unresolved, "later"),
            (FetchError::Redirects, "stale"),
            (FetchError::Status(401), "stale"),
            (FetchError::Status(404), "stale"),
            (FetchError::Status(429), "later"),
            (FetchError::Status(500), "later"),
            (FetchError::Status(503), "later"),
        ] {
            let message = error.to_string();
            assert_eq!(CopyError::from(error).label(), label, "{message}");
        }
        for (error, label) in [
            (MediaError::TooLarge(1), "unfit"),
            (MediaError::Full, "later"),
            (MediaError::Timeout, "later"),
            (MediaError::Short, "later"),
        ] {
            let message = error.to_string();
            assert_eq!(CopyError::from(error).label(), label, "{message}");
        }
    }
}
