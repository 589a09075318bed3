//! Members of a request that have no meaning in the common form.

use crate::json::Raw;

/// Names of such members that are kept; more could not be told.
const UNKNOWN_MAX: usize = 1024;

/// Notes the name of a member.
pub(crate) fn note(unknown: &mut Vec<String>, name: impl Into<String>) {
    if unknown.len() < UNKNOWN_MAX {
        unknown.push(name.into());
    }
}

/// Notes the name of a member that nobody reads. One without content (`null`, `false`, `""`, `[]`,
/// `{}`) says nothing that could be lost.
pub(crate) fn unread(value: Raw<'_>, unknown: &mut Vec<String>, name: impl FnOnce() -> String) {
    let says_nothing = value.is_null() || value.is_empty() || value.boolean() == Some(false);
    if !says_nothing && unknown.len() < UNKNOWN_MAX {
        unknown.push(name());
    }
}
