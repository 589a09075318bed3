//! Interactions errors: what an upstream says, and what a caller reads.

use crate::failure::{Failure, Family};
use crate::rejection;
use crate::scrub::Names;

/// Reads the answer of an upstream that refused a call, also when it is framed as an event.
pub fn read_failure(status: u16, body: &[u8], names: Names<'_>) -> Failure {
    rejection::read_failure(status, body, names)
}

/// Writes the error body that clients of this dialect read.
pub fn write_failure(failure: &Failure, request_id: &str) -> Vec<u8> {
    failure.write(Family::Interactions, request_id)
}

/// The last event of a stream that failed; no `done` follows. Clients go by the type inside the
/// data, not by the event's name.
pub fn write_failure_event(failure: &Failure, request_id: &str) -> Vec<u8> {
    let body = write_failure(failure, request_id);
    let mut event = b"event: error\ndata: {\"event_type\":\"error\",".to_vec();
    event.extend_from_slice(body.strip_prefix(b"{").unwrap_or_default());
    event.extend_from_slice(b"\n\n");
    event
}
