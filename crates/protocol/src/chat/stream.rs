//! Chat streams: data-only events, ended by `[DONE]`.

use super::error::write_failure;
use crate::failure::Failure;
use crate::native::places::Done;

/// The event that ends a stream.
pub(super) const DONE: Done = Done {
    data: "[DONE]",
    frame: "data: [DONE]\n\n",
};

/// The last event of a stream that failed. No `[DONE]` follows: an end is never invented.
pub fn write_failure_event(failure: &Failure, request_id: &str) -> Vec<u8> {
    let mut event = b"data: ".to_vec();
    event.extend(write_failure(failure, request_id));
    event.extend_from_slice(b"\n\n");
    event
}
