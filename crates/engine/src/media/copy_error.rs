//! Why a medium was not copied, and what may help.

use protocol::media::{Bad, Fault};
use store::MediaError;
use upstream::FetchError;

/// A copy that did not come about. Nothing of it is left.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Uncopied {
    /// It could not be had or stored now.
    #[error("{0}")]
    Later(String),
    /// It is no longer, or not yet, where the upstream said; the upstream may name another place.
    #[error("{0}")]
    Stale(String),
    /// It is not what it should be, and will not be.
    #[error("{0}")]
    Unfit(String),
}

impl Uncopied {
    /// The word of the counter.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Later(_) => "later",
            Self::Stale(_) => "stale",
            Self::Unfit(_) => "unfit",
        }
    }
}

impl From<FetchError> for Uncopied {
    fn from(error: FetchError) -> Self {
        let text = error.to_string();
        match error {
            FetchError::Refused(_) | FetchError::TooLarge(_) => Self::Unfit(text),
            // A server that is overloaded or asks for patience, or none at all.
            FetchError::Status(408 | 425 | 429 | 500..)
            | FetchError::Unresolved
            | FetchError::Call(_) => Self::Later(text),
            FetchError::Status(_) | FetchError::Redirects => Self::Stale(text),
        }
    }
}

impl From<MediaError> for Uncopied {
    fn from(error: MediaError) -> Self {
        match error {
            MediaError::TooLarge(_) => Self::Unfit(error.to_string()),
            error => Self::Later(error.to_string()),
        }
    }
}

impl From<Fault> for Uncopied {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Unreadable(error) => Self::Later(error.to_string()),
            Fault::Bad(bad) => bad.into(),
        }
    }
}

impl From<Bad> for Uncopied {
    fn from(bad: Bad) -> Self {
        Self::Unfit(bad.to_string())
    }
}

#[cfg(test)]
mod tests {
    use upstream::UrlRefusal;

    use super::*;

    #[test]
    fn what_may_help_follows_from_what_went_wrong() {
        for (error, word) in [
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
            let told = error.to_string();
            assert_eq!(Uncopied::from(error).word(), word, "{told}");
        }
        for (error, word) in [
            (MediaError::TooLarge(1), "unfit"),
            (MediaError::Full, "later"),
            (MediaError::Timeout, "later"),
            (MediaError::Short, "later"),
        ] {
            let told = error.to_string();
            assert_eq!(Uncopied::from(error).word(), word, "{told}");
        }
    }
}
