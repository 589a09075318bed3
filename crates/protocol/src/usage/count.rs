//! Reads one token count.

use crate::json::{Integer, Raw};

/// A token count as an upstream reports it. `None` if billing cannot use the value: it is not an integer, is
/// negative, or exceeds `i64`.
pub(crate) fn count(value: Raw<'_>) -> Option<u64> {
    match value.integer()? {
        Integer::Value(count) => i64::try_from(count).is_ok().then_some(count),
        Integer::Negative | Integer::Huge => None,
    }
}
