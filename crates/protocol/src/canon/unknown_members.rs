//! Collects the names of request members that the common form does not have.

use crate::json::Raw;

/// The maximum number of names that are kept. The header could not report more.
const UNKNOWN_MAX: usize = 1024;

pub(crate) fn note_unknown(unknown: &mut Vec<String>, name: impl Into<String>) {
    if unknown.len() < UNKNOWN_MAX {
        unknown.push(name.into());
    }
}

/// Records the name of a member that is not read, unless it is empty (`null`, `false`, `""`, `[]`,
/// `{}`).
pub(crate) fn note_unless_empty(
    value: Raw<'_>,
    unknown: &mut Vec<String>,
    name: impl FnOnce() -> String,
) {
    let says_nothing = value.is_null() || value.is_empty() || value.boolean() == Some(false);
    if !says_nothing && unknown.len() < UNKNOWN_MAX {
        unknown.push(name());
    }
}
