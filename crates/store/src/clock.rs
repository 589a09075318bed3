//! Reads the wall clock, for operations that get no time from their caller: administrative changes and retention.

use std::time::{SystemTime, UNIX_EPOCH};

use ledger::UnixMs;

pub(crate) fn now() -> UnixMs {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    UnixMs::new(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
