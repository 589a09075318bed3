//! Reads Responses errors of upstreams. Writes errors for clients, and the events that end a failed stream.

use crate::answer_layout::Identity;
use crate::answer_layout::StreamOpening;
use crate::failure::{Failure, Family};
use crate::json::write_string;
use crate::rejection;
use crate::scrub::Names;

/// Reads an upstream's error response.
pub fn read_failure(status: u16, body: &[u8], names: Names<'_>) -> Failure {
    rejection::read_failure(status, body, names)
}

/// Writes the error body for a client.
pub fn write_failure(failure: &Failure, request_id: &str) -> Vec<u8> {
    failure.write(Family::OpenAi, request_id)
}

/// The last event of a native stream that failed: `response.failed` if the response was created,
/// otherwise `error`.
pub(crate) fn write_failure_event(
    failure: &Failure,
    identity: &Identity,
    opening: StreamOpening,
) -> Vec<u8> {
    let next = opening.sequence.map_or(0, |last| last.saturating_add(1));
    if !opening.opened {
        return write_first_failure(failure, next);
    }
    let mut event = b"event: response.failed\ndata: {\"type\":\"response.failed\",".to_vec();
    event.extend_from_slice(format!("\"sequence_number\":{next},").as_bytes());
    event.extend_from_slice(b"\"response\":{\"id\":");
    write_string(&mut event, &identity.id);
    let reported = opening
        .created
        .and_then(|created| i64::try_from(created).ok());
    let created = reported.unwrap_or(identity.created);
    event.extend_from_slice(
        format!(",\"object\":\"response\",\"created_at\":{created},\"status\":\"failed\",")
            .as_bytes(),
    );
    event.extend_from_slice(b"\"error\":");
    write_error(&mut event, failure);
    event.extend_from_slice(b",\"incomplete_details\":null,\"model\":");
    write_string(&mut event, &identity.model);
    event.extend_from_slice(
        b",\"output\":[],\"parallel_tool_calls\":true,\"store\":false,\"tool_choice\":\"auto\",\
          \"tools\":[],\"usage\":null}}\n\n",
    );
    event
}

/// The last event of a stream that failed before its response was created.
pub(crate) fn write_first_failure(failure: &Failure, sequence: u64) -> Vec<u8> {
    let mut event = b"event: error\ndata: {\"type\":\"error\",".to_vec();
    event.extend_from_slice(format!("\"sequence_number\":{sequence},\"code\":").as_bytes());
    write_string(&mut event, failure.code.as_str());
    event.extend_from_slice(b",\"message\":");
    write_string(&mut event, &failure.message);
    event.extend_from_slice(b",\"param\":");
    match &failure.param {
        Some(param) => write_string(&mut event, param),
        None => event.extend_from_slice(b"null"),
    }
    event.extend_from_slice(b"}\n\n");
    event
}

fn write_error(out: &mut Vec<u8>, failure: &Failure) {
    out.extend_from_slice(b"{\"code\":");
    write_string(out, failure.code.as_str());
    out.extend_from_slice(b",\"message\":");
    write_string(out, &failure.message);
    out.push(b'}');
}
