//! Generate Content errors: what an upstream says, and what a caller reads.

use crate::failure::{Failure, Family};
use crate::rejection;
use crate::scrub::Names;

/// Reads the answer of an upstream that refused a call.
pub fn read_failure(status: u16, body: &[u8], names: Names<'_>) -> Failure {
    rejection::read_failure(status, body, names)
}

/// Writes the error body that clients of this dialect read.
pub fn write_failure(failure: &Failure, request_id: &str) -> Vec<u8> {
    failure.write(Family::Google, request_id)
}

/// The last event of a stream that failed. The connection must be aborted behind it: a clean
/// close would make the answer a success (S2).
pub fn write_failure_event(failure: &Failure, request_id: &str) -> Vec<u8> {
    let mut event = b"data: ".to_vec();
    event.extend(write_failure(failure, request_id));
    event.extend_from_slice(b"\n\n");
    event
}
