//! The errors of an upstream's answer that cannot be used.

use crate::failure::Failure;
use crate::json::SyntaxError;
use crate::json::typed::ValueError;
use crate::sse::TooLarge;

/// The reason why an upstream's answer cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnusableAnswer {
    /// An error instead of an answer.
    #[error("the upstream sent an error: {0}")]
    Failure(Failure),
    /// The answer is not JSON, or does not follow the protocol.
    #[error("the upstream's answer does not parse: {0}")]
    Malformed(String),
    /// An event that exceeds the size limit. The size is in bytes.
    #[error("an event is larger than {0} bytes")]
    TooLarge(usize),
    /// The stream ended without its end mark.
    #[error("the stream ended without its end mark")]
    Unfinished,
}

impl UnusableAnswer {
    pub(crate) fn malformed(why: impl Into<String>) -> Self {
        Self::Malformed(why.into())
    }

    /// The failure that the client sees.
    pub fn into_failure(self) -> Failure {
        match self {
            Self::Failure(failure) => failure,
            unusable => Failure::upstream_error().because(unusable.to_string()),
        }
    }
}

impl From<SyntaxError> for UnusableAnswer {
    fn from(error: SyntaxError) -> Self {
        Self::Malformed(error.to_string())
    }
}

impl From<ValueError> for UnusableAnswer {
    fn from(misread: ValueError) -> Self {
        Self::Malformed(misread.to_string())
    }
}

impl From<TooLarge> for UnusableAnswer {
    fn from(TooLarge(bytes_max): TooLarge) -> Self {
        Self::TooLarge(bytes_max)
    }
}
