//! What can be wrong with the bytes of a response.

/// Bytes that are not what HTTP says should stand there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("the answer's head is not HTTP/1")]
    Head,
    #[error("the answer's head is too large")]
    HeadTooLarge,
    #[error("the answer does not say in one way where it ends")]
    Length,
    #[error("the answer is encoded, though identity was asked for")]
    Encoded,
    #[error("the answer switches protocols, which was not asked for")]
    Switching,
    #[error("the answer has a bad chunk")]
    Chunk,
    #[error("the connection closed within the answer")]
    Truncated,
}
