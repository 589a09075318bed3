//! The arrival of a call: its key, its endpoint and its time.

use std::time::Instant;

use store::{KeyHead, RequestId};

use crate::telemetry::TraceContext;

/// A request of a known caller, as every kind of call needs it.
#[derive(Debug, Clone)]
pub struct Arrival {
    pub key: KeyHead,
    pub request_id: RequestId,
    /// The path template, for the journal.
    pub endpoint: &'static str,
    pub at: Instant,
    /// The ids of the call in its trace, if it is traced.
    pub trace: Option<Box<TraceContext>>,
}
