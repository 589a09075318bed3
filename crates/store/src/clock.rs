//! The wall clock, for operations without a time of their own: administrative changes and retention.

use std::time::{SystemTime, UNIX_EPOCH};

use ledger::UnixMs;

pub(crate) fn now() -> UnixMs {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    UnixMs::new(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
