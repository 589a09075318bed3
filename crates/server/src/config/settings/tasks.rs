//! How asynchronous work is followed.

use std::time::Duration;

use crate::config::document::{Section, value};

/// `[tasks]`: how asynchronous work is followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tasks {
    pub poll_first: Duration,
    pub poll_max: Duration,
    /// The pause before each further delivery of a callback.
    pub callback_retry: Vec<Duration>,
    /// How long a node has a task to itself; a poll takes a third of it at most.
    pub lease: Duration,
    /// How long ended tasks are kept.
    pub retention_days: u32,
}

/// The contract allows four deliveries: the first and three more.
const CALLBACK_RETRIES_MAX: usize = 3;

impl Default for Tasks {
    fn default() -> Self {
        Self {
            poll_first: Duration::from_secs(5),
            poll_max: Duration::from_secs(30),
            callback_retry: [10, 60, 600].map(Duration::from_secs).to_vec(),
            lease: Duration::from_secs(60),
            retention_days: 30,
        }
    }
}

impl Tasks {
    pub(crate) fn read(mut section: Section<'_, '_, '_>) -> Self {
        let mut out = Self::default();
        section.millis("poll_first_ms", &mut out.poll_first);
        section.millis("poll_max_ms", &mut out.poll_max);
        if out.poll_max < out.poll_first {
            section.report("poll_max_ms is below poll_first_ms");
        }
        if let Some(pauses) = section.list("callback_retry_ms", value::millis) {
            if let Some(extra) = pauses.get(CALLBACK_RETRIES_MAX) {
                let message = "is one too many: a callback is delivered 4 times at most";
                section
                    .log
                    .report(Some(extra.span.clone()), extra.key.as_str(), message);
            }
            out.callback_retry = pauses.into_iter().map(|at| at.value).collect();
        }
        section.millis("lease_ms", &mut out.lease);
        section.set("retention_days", &mut out.retention_days, value::count);
        section.end();
        out
    }
}
