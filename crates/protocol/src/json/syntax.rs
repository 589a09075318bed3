//! JSON syntax errors, and limits beyond the syntax.

/// Limit for nested containers, including the outermost.
pub(crate) const DEPTH_MAX: usize = 128;
/// Limit for the members of one object.
pub(crate) const KEYS_MAX: usize = 10_000;

/// The text is not JSON, or exceeds a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {at}")]
pub(crate) struct SyntaxError {
    pub(crate) kind: SyntaxErrorKind,
    pub(crate) at: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SyntaxErrorKind {
    #[error("a value is missing")]
    Value,
    #[error("`:` is missing")]
    Colon,
    #[error("`,` or `}}` is missing")]
    ObjectEnd,
    #[error("`,` or `]` is missing")]
    ArrayEnd,
    #[error("a member name is missing")]
    Key,
    #[error("the string is not closed")]
    StringEnd,
    #[error("an unescaped control character stands in a string")]
    Control,
    #[error("an escape is malformed")]
    Escape,
    #[error("a number is malformed")]
    Number,
    #[error("something follows the value")]
    Trailing,
    #[error("the text is not UTF-8")]
    Utf8,
    #[error("the nesting is deeper than {DEPTH_MAX}")]
    Depth,
    #[error("an object has more than {KEYS_MAX} members")]
    Keys,
    #[error("an object is missing")]
    Object,
    #[error("an array is missing")]
    Array,
}

/// Checks that bytes are UTF-8, which all other steps require.
pub(crate) fn utf8(bytes: &[u8]) -> Result<&str, SyntaxError> {
    // The fast check does not report the position.
    simdutf8::basic::from_utf8(bytes).map_err(|_| SyntaxError {
        kind: SyntaxErrorKind::Utf8,
        at: std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len),
    })
}
