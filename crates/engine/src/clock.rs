//! The wall clock, read in one place; the floors below take time as an argument.

use std::time::{SystemTime, UNIX_EPOCH};

use ledger::UnixMs;

/// Milliseconds since the Unix epoch, now.
pub fn now() -> UnixMs {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    UnixMs::new(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
