//! `[alerts]`: how often conditions are checked, and how alerts are delivered.

use std::time::Duration;

use crate::config::document::Section;
use crate::config::document::setting::{millis, pauses, settings};

/// A delivery is tried at most ten times.
const RETRIES_MAX: usize = 9;

settings! {
    /// How often alert conditions are checked, and when deliveries are retried.
    pub struct Alerts in "alerts" {
        /// How often balances, limits, channels and error rates are checked.
        pub check_every: Duration = millis("check_every_ms", 5_000),
        /// The delay before each retry of a delivery to a webhook; at most nine retries.
        pub retry: Vec<Duration> = pauses(
            "retry_ms",
            &[10_000, 60_000, 600_000, 3_600_000, 21_600_000],
            RETRIES_MAX,
            "is one too many: an alert is delivered 10 times at most",
        ),
    }
}
