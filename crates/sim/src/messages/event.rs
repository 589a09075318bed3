//! Defines the wire format of events.

use super::answer::{Ending, Source};
use super::message::{Block, Message};
use super::usage::Usage;
use crate::reply::{Event, EventKind};
use serde::Serialize;

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Data<'a> {
    MessageStart {
        message: Message<'a>,
    },
    ContentBlockStart {
        index: usize,
        content_block: Block<'a>,
    },
    Ping,
    ContentBlockDelta {
        index: usize,
        delta: Delta<'a>,
    },
    ContentBlockStop {
        index: usize,
    },
    MessageDelta {
        delta: &'a Ending,
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
    },
    MessageStop,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(clippy::enum_variant_names, reason = "the names of the wire")]
pub(super) enum Delta<'a> {
    TextDelta { text: &'a str },
    InputJsonDelta { partial_json: &'a str },
    ThinkingDelta { thinking: &'a str },
    SignatureDelta { signature: &'a str },
    CitationsDelta { citation: &'a Source },
}

impl Data<'_> {
    fn name(&self) -> &'static str {
        match self {
            Self::MessageStart { .. } => "message_start",
            Self::ContentBlockStart { .. } => "content_block_start",
            Self::Ping => "ping",
            Self::ContentBlockDelta { .. } => "content_block_delta",
            Self::ContentBlockStop { .. } => "content_block_stop",
            Self::MessageDelta { .. } => "message_delta",
            Self::MessageStop => "message_stop",
        }
    }

    pub(super) fn write(&self, kind: EventKind) -> Event {
        let mut json = Vec::new();
        // This cannot fail: strings, numbers and checked raw values always serialize, and a `Vec` accepts every write.
        let _ = serde_json::to_writer(&mut json, self);
        named(kind, self.name(), &json)
    }
}

pub(super) fn named(kind: EventKind, name: &str, data: &[u8]) -> Event {
    let bytes = [b"event: ", name.as_bytes(), b"\ndata: ", data, b"\n\n"].concat();
    Event {
        kind,
        bytes: bytes.into(),
    }
}
