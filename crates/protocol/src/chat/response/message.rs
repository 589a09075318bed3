//! Writes the parts of an assistant message that whole completions and chunks share.

use crate::canon::{Opaque, Stop, Thought, Token, carrier};
use crate::chat::request::write_extra;
use crate::dialect::Dialect;
use crate::json::write::{Array, Object};
use crate::shared::logprobs;

/// Thoughts before a tool call. Chat has no member for opaque data, so the id of the call carries the
/// thoughts. Every client sends the id back.
#[derive(Debug, Default)]
pub(in crate::chat) struct PendingThoughts {
    thoughts: Vec<Thought>,
}

impl PendingThoughts {
    /// Keeps a thought for the id of the next call, if its model needs it back.
    pub(in crate::chat) fn keep(&mut self, mut thought: Thought) {
        let Some(opaque) = &thought.opaque else {
            return;
        };
        // Only a signature from Messages covers the text. Other signatures are valid without the text.
        if opaque.origin != Dialect::Messages {
            thought.text.clear();
        }
        self.thoughts.push(thought);
    }

    /// The id of the next call, including the thoughts before it.
    pub(in crate::chat) fn encode_id(&mut self, id: &str, signature: Option<&Opaque>) -> String {
        let carried = carrier::IdPayload {
            thoughts: std::mem::take(&mut self.thoughts),
            opaque: signature.cloned(),
        };
        carrier::encode(id, &carried)
    }
}

/// Writes the first members of a call. A thought signature is also written into the extension member that
/// clients of its vendor read.
pub(in crate::chat) fn write_call_head(it: &mut Object<'_>, id: &str, signature: Option<&Opaque>) {
    it.text("id", id).text("type", "function");
    let of_call = |opaque: &&Opaque| matches!(opaque.origin, Dialect::Generate | Dialect::Chat);
    if let Some(opaque) = signature.filter(of_call) {
        write_extra(it, &opaque.wrap());
    }
}

pub(in crate::chat) fn write_logprobs(choice: &mut Object<'_>, tokens: &[Token]) {
    choice.object("logprobs", |it| {
        it.array("content", |list| logprobs::write(list, tokens));
        it.null("refusal");
    });
}

/// A citation of a source. Offsets count characters of the whole content.
#[derive(Debug)]
pub(in crate::chat) struct Citation {
    pub(in crate::chat) url: String,
    pub(in crate::chat) title: String,
    pub(in crate::chat) start: u64,
    pub(in crate::chat) end: u64,
}

pub(in crate::chat) fn write_annotations(list: &mut Array<'_>, citations: &[Citation]) {
    for citation in citations {
        list.object(|it| {
            it.text("type", "url_citation")
                .object("url_citation", |it| {
                    it.text("url", &citation.url).text("title", &citation.title);
                    it.number("start_index", citation.start)
                        .number("end_index", citation.end);
                });
        });
    }
}

/// The finish reason. `refused` says whether the answer contains the text of a refusal.
pub(in crate::chat) fn finish_reason(stop: &Stop, refused: bool) -> &'static str {
    match stop {
        Stop::End | Stop::Sequence(_) | Stop::Paused => "stop",
        Stop::Length | Stop::ContextFull => "length",
        Stop::ToolCalls => "tool_calls",
        Stop::Refusal { .. } if refused => "stop",
        Stop::Refusal { .. } | Stop::Filter(_) => "content_filter",
    }
}
