//! `[alerts]`: how often conditions are checked, and how alerts are delivered.

use std::time::Duration;

use crate::config::document::Section;
use crate::config::document::setting::{millis, pauses, settings};

/// A delivery is tried ten times at most.
const RETRIES_MAX: usize = 9;

settings! {
    /// How often alerts are looked for, and how webhooks are told of them.
    pub struct Alerts in "alerts" {
        /// How often balances, limits, channels and error rates are checked.
        pub check_every: Duration = millis("check_every_ms", 5_000),
        /// The time before each further delivery to a webhook; at most nine.
        pub retry: Vec<Duration> = pauses(
            "retry_ms",
            &[10_000, 60_000, 600_000, 3_600_000, 21_600_000],
            RETRIES_MAX,
            "is one too many: an alert is delivered 10 times at most",
        ),
    }
}
