//! Limits of sessions.

use std::time::Duration;

/// How long sessions and their silences may last, and how large messages may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLimits {
    /// How often we ping each side, to detect a dead one.
    pub ping: Duration,
    /// A side that sends nothing, or accepts nothing, for this long counts as gone.
    pub dead: Duration,
    pub session: Duration,
    /// The size limit of a message, which is usually one frame.
    pub message_bytes_max: usize,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            ping: Duration::from_secs(20),
            dead: Duration::from_secs(60),
            session: Duration::from_secs(2 * 3600),
            message_bytes_max: 16 << 20,
        }
    }
}
