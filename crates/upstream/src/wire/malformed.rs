//! The error for responses that violate HTTP or our limits.

/// The way in which a response violates HTTP or our limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("the answer's head is not HTTP/1")]
    Head,
    #[error("the answer's head is too large")]
    HeadTooLarge,
    #[error("the answer declares its length ambiguously")]
    Length,
    #[error("the answer is compressed although identity was requested")]
    Encoded,
    #[error("the answer switches protocols without being asked")]
    Switching,
    #[error("the answer has a bad chunk")]
    Chunk,
    #[error("the connection closed in the middle of the answer")]
    Truncated,
}
