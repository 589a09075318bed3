//! The timeouts of a call (L8).

use std::time::Duration;

/// The timeouts of one call. Every wait has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// DNS lookup, TCP and TLS together.
    pub connect: Duration,
    /// From the request to the head of the response. It is long, because reasoning models send
    /// nothing while they think.
    pub first_byte: Duration,
    /// Between two pieces of the response body.
    pub idle: Duration,
    /// From the request to the last byte of the response.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            first_byte: Duration::from_secs(600),
            idle: Duration::from_secs(300),
            total: Duration::from_secs(1_800),
        }
    }
}
