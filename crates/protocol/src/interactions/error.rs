//! Reads Interactions errors of upstreams and writes those for clients.

use crate::failure::{Failure, Family};
use crate::rejection;
use crate::scrub::Names;

/// Reads an upstream's error response, which may have the form of an event.
pub fn read_failure(status: u16, body: &[u8], names: Names<'_>) -> Failure {
    rejection::read_failure(status, body, names)
}

/// Writes the error body for a client.
pub fn write_failure(failure: &Failure, request_id: &str) -> Vec<u8> {
    failure.write(Family::Interactions, request_id)
}

/// The last event of a failed stream. No `done` follows. Clients read the type inside the data, not the name
/// of the event.
pub(crate) fn write_failure_event(failure: &Failure, request_id: &str) -> Vec<u8> {
    let body = write_failure(failure, request_id);
    let mut event = b"event: error\ndata: {\"event_type\":\"error\",".to_vec();
    event.extend_from_slice(body.strip_prefix(b"{").unwrap_or_default());
    event.extend_from_slice(b"\n\n");
    event
}
