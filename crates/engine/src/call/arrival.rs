//! The arrival of a call: its key, endpoint and time.

use std::time::Instant;

use store::{KeyHead, RequestId};

use crate::telemetry::TraceContext;

/// The properties of a request that every kind of call needs. Its caller is already authenticated.
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
