//! Failures on the native path: what the upstream says, and how a stream is ended by one.

use bytes::Bytes;

use crate::chat;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::generate;
use crate::interactions;
use crate::messages;
use crate::responses;
use crate::scrub::Names;

/// Reads the answer of an upstream that refused a call. Nothing of the upstream's identity is in
/// the message; what helps an operator is in the cause.
pub fn read_failure(dialect: Dialect, status: u16, body: &[u8], names: Names<'_>) -> Failure {
    match dialect {
        Dialect::Chat => chat::read_failure(status, body, names),
        Dialect::Responses => responses::read_failure(status, body, names),
        Dialect::Messages => messages::read_failure(status, body, names),
        Dialect::Generate => generate::read_failure(status, body, names),
        Dialect::Interactions => interactions::read_failure(status, body, names),
    }
}

/// The last event of a stream that failed before anything of it was sent; a [`super::Rewriter`]
/// knows more of a stream that has begun. Nothing follows it, least of all an end mark.
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
