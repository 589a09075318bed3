//! Marks the data of redacted thoughts, which are encrypted as a whole.
//!
//! In the common form a thought has a text and one opaque value. In this dialect the opaque value
//! of a redacted thought is in a different type of block than a signature. The data is marked when
//! an upstream's answer is read, so that the writers for clients and upstreams of this dialect can
//! tell it from a signature.

const MARK: &str = "redacted:";

/// The opaque value for `data`, with its mark.
pub(super) fn mark(data: &str) -> String {
    format!("{MARK}{data}")
}

/// The data of a marked value. Signatures are base64 and contain no colon.
pub(super) fn data(value: &str) -> Option<&str> {
    value.strip_prefix(MARK)
}
