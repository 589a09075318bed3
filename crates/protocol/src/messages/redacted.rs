//! Thoughts that came encrypted as a whole.
//!
//! Elsewhere a thought has a text and one opaque value; here the value of a redacted one goes into
//! another block than a signature does. So it is marked on its way out, and known on its way back.

const MARK: &str = "redacted:";

/// The value to carry for `data`.
pub(super) fn mark(data: &str) -> String {
    format!("{MARK}{data}")
}

/// The data in a carried value, if it is one. Signatures are base64 and have no colon.
pub(super) fn data(value: &str) -> Option<&str> {
    value.strip_prefix(MARK)
}
