//! Defines the wire format of events.

use super::answer::Response;
use super::item::{Annotation, Part, WireItem};
use crate::openai::TokenLogprob;
use crate::reply::{Event, EventKind};
use serde::Serialize;

/// The members of an event in addition to its type and number.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Data<'a> {
    Response {
        response: Response<'a>,
    },
    Item {
        output_index: usize,
        item: WireItem<'a>,
    },
    Part {
        #[serde(flatten)]
        spot: ContentPosition<'a>,
        part: Part<'a>,
    },
    Delta {
        #[serde(flatten)]
        spot: ContentPosition<'a>,
        delta: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        logprobs: Option<Vec<TokenLogprob>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        obfuscation: Option<String>,
    },
    Text {
        #[serde(flatten)]
        spot: ContentPosition<'a>,
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        logprobs: Option<Vec<TokenLogprob>>,
    },
    Annotation {
        #[serde(flatten)]
        spot: ContentPosition<'a>,
        annotation_index: usize,
        annotation: Annotation<'a>,
    },
    Refusal {
        #[serde(flatten)]
        spot: ContentPosition<'a>,
        refusal: &'a str,
    },
    Arguments {
        #[serde(flatten)]
        spot: ContentPosition<'a>,
        arguments: &'a str,
    },
    Input {
        #[serde(flatten)]
        spot: ContentPosition<'a>,
        input: &'a str,
    },
    Error {
        code: Option<&'a str>,
        message: &'a str,
        param: Option<&'a str>,
    },
}

/// The position of an event's content in the output.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct ContentPosition<'a> {
    item_id: &'a str,
    output_index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary_index: Option<usize>,
}

impl<'a> ContentPosition<'a> {
    pub(super) fn item(item_id: &'a str, output_index: usize) -> Self {
        Self {
            item_id,
            output_index,
            content_index: None,
            summary_index: None,
        }
    }

    pub(super) fn content(item_id: &'a str, output_index: usize) -> Self {
        Self {
            content_index: Some(0),
            ..Self::item(item_id, output_index)
        }
    }

    pub(super) fn summary(item_id: &'a str, output_index: usize, summary_index: usize) -> Self {
        Self {
            summary_index: Some(summary_index),
            ..Self::item(item_id, output_index)
        }
    }
}

impl Data<'_> {
    pub(super) fn write(&self, kind: EventKind, name: &str, number: u64) -> Event {
        let head =
            format!("event: {name}\ndata: {{\"type\":\"{name}\",\"sequence_number\":{number}");
        let mut bytes = head.into_bytes();
        let at = bytes.len();
        // Strings, numbers and checked raw values always serialize into memory.
        let _ = serde_json::to_writer(&mut bytes, self);
        // Replaces the opening brace with a comma, so that the members of the data continue the object of the head.
        if let Some(brace) = bytes.get_mut(at) {
            *brace = b',';
        }
        bytes.extend_from_slice(b"\n\n");
        Event {
            kind,
            bytes: bytes.into(),
        }
    }
}

pub(super) fn named(kind: EventKind, name: &str, data: &[u8]) -> Event {
    let bytes = [b"event: ", name.as_bytes(), b"\ndata: ", data, b"\n\n"].concat();
    Event {
        kind,
        bytes: bytes.into(),
    }
}
