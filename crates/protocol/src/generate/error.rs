//! Reads Generate Content errors of upstreams and writes those for clients.

use crate::failure::{Failure, Family};
use crate::rejection;
use crate::scrub::Names;

/// Reads an upstream's error response.
pub fn read_failure(status: u16, body: &[u8], names: Names<'_>) -> Failure {
    rejection::read_failure(status, body, names)
}

/// Writes the error body for a client.
pub fn write_failure(failure: &Failure, request_id: &str) -> Vec<u8> {
    failure.write(Family::Google, request_id)
}

/// The last event of a failed stream. The connection must be aborted after it, because clients treat a clean
/// close as success (S2 in `docs/invariants.md`).
pub(crate) fn write_failure_event(failure: &Failure, request_id: &str) -> Vec<u8> {
    let mut event = b"data: ".to_vec();
    event.extend(write_failure(failure, request_id));
    event.extend_from_slice(b"\n\n");
    event
}
