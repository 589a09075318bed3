//! Removes the upstream's identity from events that report a failure.

use super::event::{Event, at};
use super::frame::Changed;
use crate::json::Raw;
use crate::json::patch;
use crate::scrub::{Names, Words};

/// The event without the words that identify the upstream, if it contains any.
pub(super) fn clean(text: &str, event: &Event<'_>, names: Names<'_>) -> Option<Changed> {
    let member = |name: &str| event.get(name).ok().flatten();
    let mut words = Words::default();
    let mut clean = |name: &str, value: Option<Raw<'_>>| {
        if let Some(value) = value {
            words.clean(name, value, names);
        }
    };
    // A string in place of an object is the message itself.
    clean("message", member("error"));
    if event.kind() == "error" {
        for name in ["message", "code", "reason", "detail"] {
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
    Some(Changed {
        text: String::from_utf8(text.to_vec()).ok()?,
        withheld: Some(withheld),
    })
}

/// Whether a text may be an event that reports a failure. Other events need not be read.
pub(super) fn may_report_failure(text: &str) -> bool {
    memchr::memmem::find(text.as_bytes(), b"error").is_some() || text.contains('\\')
}
