//! Writes error bodies in the envelope of each family of endpoints.

use std::borrow::Cow;

use super::code::{Code, Family};
use crate::failure::Failure;
use crate::json::write_string;

/// The text by which a vendor's clients recognize a prompt that is too long. The vendor has no code for this
/// error. Clients that recognize it shorten the conversation.
struct OverflowPhrase {
    known_by: &'static str,
    /// Prefix for a message without that text.
    lead: &'static str,
}

const MESSAGES_OVERFLOW: OverflowPhrase = OverflowPhrase {
    known_by: "prompt is too long",
    lead: "prompt is too long: ",
};

const GOOGLE_OVERFLOW: OverflowPhrase = OverflowPhrase {
    known_by: "exceeds the maximum number of tokens allowed",
    lead: "The input token count exceeds the maximum number of tokens allowed. ",
};

impl Failure {
    /// The whole error body in the envelope of `family`.
    pub fn write(&self, family: Family, request_id: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.message.len() + 192);
        match family {
            Family::OpenAi => write_openai(self, &mut out),
            Family::Messages => write_messages(self, &mut out, request_id),
            Family::Google => write_google(self, &mut out),
            Family::Interactions => write_interactions(self, &mut out),
        }
        out
    }
}

fn write_openai(failure: &Failure, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"error\":{\"message\":");
    write_string(out, &failure.message);
    out.extend_from_slice(b",\"type\":");
    write_string(out, openai_type(failure.status()));
    out.extend_from_slice(b",\"param\":");
    match &failure.param {
        Some(param) => write_string(out, param),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b",\"code\":");
    write_string(out, failure.code.as_str());
    out.extend_from_slice(b"}}");
}

fn write_messages(failure: &Failure, out: &mut Vec<u8>, request_id: &str) {
    out.extend_from_slice(b"{\"type\":\"error\",\"error\":{\"type\":");
    write_string(out, messages_type(failure.status()));
    out.extend_from_slice(b",\"code\":");
    write_string(out, failure.code.as_str());
    out.extend_from_slice(b",\"message\":");
    write_string(out, &message_with(failure, &MESSAGES_OVERFLOW));
    out.extend_from_slice(b",\"details\":{\"error_code\":");
    match failure.detail {
        Some(detail) => {
            write_string(out, detail.error_code);
            out.extend_from_slice(b",\"unsupported\":[");
            for (number, member) in detail.unsupported.iter().enumerate() {
                if number > 0 {
                    out.push(b',');
                }
                write_string(out, member);
            }
            out.push(b']');
        }
        None => write_string(out, failure.code.as_str()),
    }
    out.extend_from_slice(b"}}");
    if !request_id.is_empty() {
        out.extend_from_slice(b",\"request_id\":");
        write_string(out, request_id);
    }
    out.push(b'}');
}

fn write_google(failure: &Failure, out: &mut Vec<u8>) {
    let status = failure.status();
    out.extend_from_slice(b"{\"error\":{\"code\":");
    out.extend_from_slice(status.to_string().as_bytes());
    out.extend_from_slice(b",\"message\":");
    let message = message_with(failure, &GOOGLE_OVERFLOW);
    // Clients of this envelope find the gateway's code in the message (`docs/api/errors.md`).
    write_string(out, &format!("{}: {message}", failure.code));
    out.extend_from_slice(b",\"status\":");
    write_string(out, google_status(status));
    out.extend_from_slice(
        b",\"details\":[{\"@type\":\"type.googleapis.com/google.rpc.ErrorInfo\",\"reason\":",
    );
    write_string(out, failure.code.as_str());
    out.extend_from_slice(b",\"domain\":\"tollgate\"}]}}");
}

fn write_interactions(failure: &Failure, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"error\":{\"code\":");
    write_string(out, failure.code.as_str());
    out.extend_from_slice(b",\"message\":");
    write_string(out, &failure.message);
    out.extend_from_slice(b"}}");
}

/// The message of a failure, with the text by which clients recognize a prompt that is too long.
fn message_with<'f>(failure: &'f Failure, overflow: &OverflowPhrase) -> Cow<'f, str> {
    let message = &*failure.message;
    if failure.code != Code::ContextLengthExceeded || message.contains(overflow.known_by) {
        return Cow::Borrowed(message);
    }
    Cow::Owned(format!("{}{message}", overflow.lead))
}

/// `error.type` of the `OpenAI` envelope.
const fn openai_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "insufficient_quota",
        403 => "permission_error",
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    }
}

/// `error.type` of the Messages envelope.
const fn messages_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        408 | 504 => "timeout_error",
        409 => "conflict_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 | 529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}

/// The status label of the Google envelope.
const fn google_status(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        402 | 429 => "RESOURCE_EXHAUSTED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        408 | 504 => "DEADLINE_EXCEEDED",
        409 => "ABORTED",
        405 | 501 => "UNIMPLEMENTED",
        503 => "UNAVAILABLE",
        500.. => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    }
}
