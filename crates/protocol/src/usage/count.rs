//! Reads one token count.

use crate::json::{Integer, Raw};

/// A token count as an upstream reports it. `None` if it is not an integer, negative, or larger
/// than `i64`, because it cannot be used for billing.
pub(crate) fn count(value: Raw<'_>) -> Option<u64> {
    match value.integer()? {
        Integer::Value(count) => i64::try_from(count).is_ok().then_some(count),
        Integer::Negative | Integer::Huge => None,
    }
}
