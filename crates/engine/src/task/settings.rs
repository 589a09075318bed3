//! The settings of tasks.

use std::time::Duration;

/// How tasks are polled and how their results are delivered.
#[derive(Debug, Clone)]
pub struct TaskSettings {
    /// The pause before the first poll. Later pauses are longer.
    pub poll_first: Duration,
    pub poll_max: Duration,
    /// The pauses before the second and later attempts at a callback.
    pub callback_retry: Vec<Duration>,
    /// How long a claim on a task lasts.
    pub lease: Duration,
    /// How long ended tasks are kept.
    pub retention: Duration,
    /// The base URL of media that we serve.
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
