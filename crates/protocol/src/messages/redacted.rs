//! Marks the data of redacted thoughts, which are encrypted as a whole.
//!
//! In the common form a thought has a text and one opaque value. This dialect has different types of blocks
//! for a signature and for a redacted thought. So the reader of an upstream's answer marks the data of
//! redacted thoughts. Writers for this dialect recognize the data by the mark.

const MARK: &str = "redacted:";

/// The opaque value for `data`, with its mark.
pub(super) fn mark(data: &str) -> String {
    format!("{MARK}{data}")
}

/// The data of a marked value. Signatures are base64 and contain no colon.
pub(super) fn data(value: &str) -> Option<&str> {
    value.strip_prefix(MARK)
}
