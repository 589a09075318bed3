//! What operators can set about tasks.

use std::time::Duration;

/// How tasks are followed and their ends told.
#[derive(Debug, Clone)]
pub struct TaskSettings {
    /// The pause before the first poll; it grows with each.
    pub poll_first: Duration,
    pub poll_max: Duration,
    /// The pauses before further deliveries of a callback.
    pub callback_retry: Vec<Duration>,
    /// How long a claim on a task lasts.
    pub lease: Duration,
    /// How long ended tasks are kept.
    pub retention: Duration,
    /// Where media that we keep are served.
    pub public_url: String,
}

impl Default for TaskSettings {
    fn default() -> Self {
        Self {
            poll_first: Duration::from_secs(5),
            poll_max: Duration::from_secs(30),
            callback_retry: [10, 60, 600].map(Duration::from_secs).to_vec(),
            lease: Duration::from_secs(60),
            retention: Duration::from_secs(30 * 86_400),
            public_url: String::new(),
        }
    }
}
