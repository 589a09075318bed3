//! `[tasks]`: polls of video tasks and deliveries of callbacks.

use std::time::Duration;

use crate::config::document::Section;
use crate::config::document::setting::{count, millis, pauses, settings};

/// The API allows four deliveries of a callback: the first and three retries.
const CALLBACK_RETRIES_MAX: usize = 3;

settings! {
    /// Polls of video tasks and deliveries of callbacks.
    pub struct Tasks in "tasks" {
        /// The delay before the first poll of an upstream's task. It grows with each poll.
        pub poll_first: Duration = millis("poll_first_ms", 5_000),
        /// The maximum delay between two polls.
        pub poll_max: Duration = millis("poll_max_ms", 30_000),
        /// The delay before each retry of a callback; at most three retries.
        pub callback_retry: Vec<Duration> =
            pauses(
                "callback_retry_ms",
                &[10_000, 60_000, 600_000],
                CALLBACK_RETRIES_MAX,
                "is one too many: a callback is delivered 4 times at most",
            ),
        /// How long a node owns a task that it has claimed. One poll takes at most a third of this time.
        pub lease: Duration = millis("lease_ms", 60_000),
        /// How many days ended tasks are kept. Their charges are kept forever.
        pub retention_days: u32 = count("retention_days", 30),
    }
}

impl Tasks {
    /// Reads the table, and checks that `poll_max_ms` is not below `poll_first_ms`.
    pub(crate) fn read_checked(section: &mut Section<'_, '_, '_>) -> Self {
        let tasks = Self::read(section);
        if tasks.poll_max < tasks.poll_first {
            section.report("poll_max_ms is below poll_first_ms");
        }
        tasks
    }
}
