//! Reads one token count.

use crate::json::{Integer, Raw};

/// A token count as an upstream reports it. What is no whole number, negative or beyond `i64` is
/// missing: it cannot be billed.
pub(crate) fn count(value: Raw<'_>) -> Option<u64> {
    match value.integer()? {
        Integer::Value(count) => i64::try_from(count).is_ok().then_some(count),
        Integer::Negative | Integer::Huge => None,
    }
}
