//! Writes output items and their parts.

use std::borrow::Cow;

use crate::canon::{Opaque, Token};
use crate::dialect::Dialect;
use crate::json::write;
use crate::shared::logprobs;

/// Derives item ids from the id of the response, so that they are the same in every event.
#[derive(Debug)]
pub(in crate::responses) struct ItemId {
    stem: Box<str>,
}

impl ItemId {
    pub(in crate::responses) fn new(response: &str) -> Self {
        let stem = response.strip_prefix("resp_").unwrap_or(response);
        Self { stem: stem.into() }
    }

    pub(in crate::responses) fn at(&self, prefix: &str, index: u64) -> String {
        format!("{prefix}_{}_{index}", self.stem)
    }
}

/// The value of `encrypted_content`: the upstream's own value if it uses this dialect, otherwise a
/// wrapped value that names its origin.
pub(in crate::responses) fn encrypted_content(opaque: &Opaque) -> Cow<'_, str> {
    match opaque.origin {
        Dialect::Responses => Cow::Borrowed(&opaque.text),
        _ => Cow::Owned(opaque.wrap()),
    }
}

/// The arguments of a call as JSON, which is never an empty string.
pub(in crate::responses) fn arguments(text: &str) -> &str {
    if text.trim().is_empty() { "{}" } else { text }
}

/// Appends a source to a list of annotations without brackets.
pub(in crate::responses) fn push_annotation(
    annotations: &mut Vec<u8>,
    url: &str,
    title: &str,
    start: u64,
    end: u64,
) {
    if !annotations.is_empty() {
        annotations.push(b',');
    }
    write::object(annotations, |it| {
        it.text("type", "url_citation");
        it.number("start_index", start).number("end_index", end);
        it.text("url", url).text("title", title);
    });
}

/// Writes a part of a message. `annotations` and `logprobs` are lists without brackets.
pub(in crate::responses) fn part(
    out: &mut Vec<u8>,
    is_refusal: bool,
    text: &str,
    annotations: &[u8],
    logprobs: &[u8],
) {
    write::object(out, |it| {
        if is_refusal {
            it.text("type", "refusal").text("refusal", text);
            return;
        }
        it.text("type", "output_text");
        it.value("annotations", |out| list(out, annotations));
        it.value("logprobs", |out| list(out, logprobs));
        it.text("text", text);
    });
}

/// Writes a message. `parts` is a list without brackets.
pub(in crate::responses) fn message(out: &mut Vec<u8>, id: &str, status: &str, parts: &[u8]) {
    write::object(out, |it| {
        it.text("id", id).text("type", "message");
        it.text("status", status);
        it.value("content", |out| list(out, parts));
        it.text("role", "assistant");
    });
}

/// Writes reasoning, with its encrypted form if there is one.
pub(in crate::responses) fn reasoning(
    out: &mut Vec<u8>,
    id: &str,
    text: &str,
    encrypted: Option<&str>,
) {
    write::object(out, |it| {
        it.text("id", id).text("type", "reasoning");
        it.array("summary", |it| {
            if !text.is_empty() {
                it.value(|out| summary(out, text));
            }
        });
        if let Some(encrypted) = encrypted {
            it.text("encrypted_content", encrypted);
        }
    });
}

/// Writes a part of a summary.
pub(in crate::responses) fn summary(out: &mut Vec<u8>, text: &str) {
    write::object(out, |it| {
        it.text("type", "summary_text").text("text", text);
    });
}

pub(in crate::responses) fn call(
    out: &mut Vec<u8>,
    id: &str,
    call_id: &str,
    name: &str,
    arguments: &str,
    status: &str,
) {
    write::object(out, |it| {
        it.text("id", id).text("type", "function_call");
        it.text("status", status).text("arguments", arguments);
        it.text("call_id", call_id).text("name", name);
    });
}

/// Appends tokens to a list of log probabilities without brackets.
pub(in crate::responses) fn push_logprobs(written: &mut Vec<u8>, tokens: &[Token]) {
    if tokens.is_empty() {
        return;
    }
    if !written.is_empty() {
        written.push(b',');
    }
    let start = written.len();
    write::array(written, |list| logprobs::write(list, tokens));
    // Removes the closing bracket.
    written.pop();
    written.remove(start);
}

pub(in crate::responses) fn list(out: &mut Vec<u8>, inside: &[u8]) {
    out.push(b'[');
    out.extend_from_slice(inside);
    out.push(b']');
}
