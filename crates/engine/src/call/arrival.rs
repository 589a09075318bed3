//! Who calls, at which endpoint and since when.

use std::time::Instant;

use store::{KeyHead, RequestId};

/// A request of a known caller, as every kind of call needs it.
#[derive(Debug, Clone)]
pub struct Arrival {
    pub key: KeyHead,
    pub request_id: RequestId,
    /// The path template, for the journal.
    pub endpoint: &'static str,
    pub at: Instant,
}
