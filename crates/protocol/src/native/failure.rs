//! Reads failures of upstreams on the native path, and writes the failures that end a stream.

use bytes::Bytes;

use crate::chat;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::generate;
use crate::interactions;
use crate::messages;
use crate::rejection;
use crate::responses;
use crate::scrub::Names;

/// Reads the error response of an upstream that refused a call. The message does not identify the upstream.
/// The cause has the details for the operator.
pub fn read_failure(dialect: Dialect, status: u16, body: &[u8], names: Names<'_>) -> Failure {
    match dialect {
        Dialect::Chat => chat::read_failure(status, body, names),
        Dialect::Responses => responses::read_failure(status, body, names),
        Dialect::Messages => messages::read_failure(status, body, names),
        Dialect::Generate => generate::read_failure(status, body, names),
        Dialect::Interactions => interactions::read_failure(status, body, names),
    }
}

/// Adds the error's name, which the upstream sent in a response header, to the error body.
pub fn with_error_name(body: &[u8], name: &str) -> Vec<u8> {
    rejection::with_error_name(body, name)
}

/// Whether an upstream refused a request because our clock differs from its own.
pub fn blames_clock(body: &[u8]) -> bool {
    rejection::blames_clock(body)
}

/// The last event of a stream that failed before anything was sent. Use [`super::Rewriter::fail`]
/// for a stream that has started. No end mark follows this event.
pub fn terminal_failure(dialect: Dialect, failure: &Failure, request_id: &str) -> Bytes {
    let event = match dialect {
        Dialect::Chat => chat::write_failure_event(failure, request_id),
        Dialect::Responses => responses::write_first_failure(failure, 0),
        Dialect::Messages => messages::write_failure_event(failure, request_id),
        Dialect::Generate => generate::write_failure_event(failure, request_id),
        Dialect::Interactions => interactions::write_failure_event(failure, request_id),
    };
    Bytes::from(event)
}
