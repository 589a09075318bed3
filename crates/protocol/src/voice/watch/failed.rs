//! Removes the upstream's identity from events that report a failure.

use super::event::{Event, EventError, at};
use super::frame::FrameReplacement;
use super::write_failure_frame;
use crate::failure::Failure;
use crate::json::Raw;
use crate::json::patch;
use crate::scrub::{Names, WordEdits, mask, mask_keys};

/// The id of the event that replaces a frame of which nothing can be shown.
const UNREADABLE: &str = "event_unreadable";

/// The maximum length of a text that may be a message instead of an event.
const MESSAGE_BYTES_MAX: usize = 512;
/// Members in which an upstream reports something in its own words.
const REPORTS: [&str; 5] = ["message", "code", "reason", "detail", "details"];

/// The frame without the words that identify the upstream, if it contains any.
pub(super) fn clean_frame(text: &str, names: Names<'_>) -> Option<FrameReplacement> {
    match Event::read(text) {
        Ok(event) => clean(text, &event, names),
        Err(error) => clean_unreadable(text, &error, names),
    }
}

/// Cleans a text that could not be read as an event. A short text that is not an event is relayed without the
/// identities in it. A long text is relayed unchanged. A text that two readers could understand differently is
/// not relayed.
pub(super) fn clean_unreadable(
    text: &str,
    error: &EventError,
    names: Names<'_>,
) -> Option<FrameReplacement> {
    let shown = match error {
        EventError::NotAnEvent | EventError::Unreadable(_) if text.len() > MESSAGE_BYTES_MAX => {
            return None;
        }
        EventError::NotAnEvent | EventError::Unreadable(_) => mask(text, names),
        EventError::Ambiguous(_) => {
            write_failure_frame(&Failure::upstream_error(), UNREADABLE, None)
        }
    };
    let is_changed = shown != text.trim();
    is_changed.then(|| FrameReplacement {
        text: shown,
        withheld: Some(mask_keys(text).into()),
    })
}

/// Whether events of this type report a failure. A text without a type is not an event of the
/// protocol, and is cleaned like a report.
fn is_report(kind: &str) -> bool {
    let last = kind.rsplit('.').next().unwrap_or_default();
    matches!(last, "" | "error" | "warning" | "failed")
}

/// The event without the words that identify the upstream, if it contains any.
pub(super) fn clean(text: &str, event: &Event<'_>, names: Names<'_>) -> Option<FrameReplacement> {
    let member = |name: &str| event.get(name).ok().flatten();
    let mut words = WordEdits::default();
    let mut clean = |name: &str, value: Option<Raw<'_>>| {
        if let Some(value) = value {
            words.clean(name, value, names);
        }
    };
    // A string in place of an object is the message itself.
    clean("message", member("error"));
    if is_report(event.kind()) {
        for name in REPORTS {
            clean(name, member(name));
        }
    }
    if event.kind() == "response.done" {
        let details = |response| at(response, &["status_details"]);
        clean("", member("response").and_then(details));
    }
    let withheld = words.withheld()?.into();
    let text = bytes::Bytes::copy_from_slice(text.as_bytes());
    let text = patch::apply(&text, std::mem::take(&mut words.edits));
    Some(FrameReplacement {
        text: String::from_utf8(text.to_vec()).ok()?,
        withheld: Some(withheld),
    })
}

/// Whether a text may report a failure, or is not an event at all. Other texts need not be read.
pub(super) fn may_report_failure(text: &str) -> bool {
    let holds = |word: &str| memchr::memmem::find(text.as_bytes(), word.as_bytes()).is_some();
    !text.trim_start().starts_with('{')
        || text.contains('\\')
        || holds("error")
        || REPORTS.into_iter().any(holds)
}
