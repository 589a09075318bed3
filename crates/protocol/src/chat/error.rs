//! Reads chat errors of upstreams and writes chat errors for clients.

use crate::failure::{Failure, Family};
use crate::rejection;
use crate::scrub::Names;

/// Reads an upstream's error response to a chat call.
pub fn read_failure(status: u16, body: &[u8], names: Names<'_>) -> Failure {
    rejection::read_failure(status, body, names)
}

/// Writes the error body that chat clients read.
pub fn write_failure(failure: &Failure, request_id: &str) -> Vec<u8> {
    failure.write(Family::OpenAi, request_id)
}

/// The last event of a failed stream. No `[DONE]` follows, because the answer is not complete.
pub(crate) fn write_failure_event(failure: &Failure, request_id: &str) -> Vec<u8> {
    let mut event = b"data: ".to_vec();
    event.extend(write_failure(failure, request_id));
    event.extend_from_slice(b"\n\n");
    event
}
