//! Defines the wire format of a message.

use super::answer::{Answer, AnswerBlock, Source, StopDetails};
use super::usage::Usage;
use crate::call_context::CallContext;
use crate::reply::Reply;
use http::StatusCode;
use serde::Serialize;
use serde_json::value::RawValue;

/// The message in a whole answer and, without its content, in the first event of a stream.
#[derive(Serialize)]
pub(super) struct Message<'a> {
    model: &'a str,
    id: &'a str,
    r#type: &'static str,
    role: &'static str,
    content: Vec<Block<'a>>,
    stop_reason: Option<&'a str>,
    stop_sequence: Option<&'a str>,
    stop_details: Option<&'a StopDetails>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a> {
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        citations: Option<Vec<&'a Source>>,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: Input<'a>,
        caller: Caller,
    },
}

/// The input of a call. An input that a token limit has cut is no longer JSON and is written as an empty object.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Input<'a> {
    Whole(&'a RawValue),
    None {},
}

#[derive(Serialize)]
pub(super) struct Caller {
    r#type: &'static str,
}

const DIRECT: Caller = Caller { r#type: "direct" };

impl<'a> Message<'a> {
    /// The message without its content.
    pub(super) fn begun(answer: &'a Answer, usage: Option<Usage>) -> Self {
        Self {
            model: &answer.model,
            id: &answer.id,
            r#type: "message",
            role: "assistant",
            content: Vec::new(),
            stop_reason: None,
            stop_sequence: None,
            stop_details: None,
            usage,
        }
    }

    fn whole(answer: &'a Answer, usage: Option<Usage>) -> Self {
        Self {
            content: answer.blocks.iter().map(Block::whole).collect(),
            stop_reason: Some(&answer.end.stop_reason),
            stop_sequence: answer.end.stop_sequence.as_deref(),
            stop_details: answer.end.stop_details.as_ref(),
            ..Self::begun(answer, usage)
        }
    }
}

impl<'a> Block<'a> {
    pub(super) fn whole(block: &'a AnswerBlock) -> Self {
        match block {
            AnswerBlock::Thinking { thought, signature } => Self::Thinking {
                thinking: thought.as_str(),
                signature,
            },
            AnswerBlock::Redacted { data } => Self::RedactedThinking { data },
            AnswerBlock::Text { text, source } => Self::Text {
                text: text.as_str(),
                citations: source.as_ref().map(|source| vec![source]),
            },
            AnswerBlock::Call { id, name, input } => Self::ToolUse {
                id,
                name,
                input: serde_json::from_str(input.as_str()).map_or(Input::None {}, Input::Whole),
                caller: DIRECT,
            },
        }
    }

    /// The block without its content. Only a redacted block already has its data.
    pub(super) fn begun(block: &'a AnswerBlock) -> Self {
        match block {
            AnswerBlock::Thinking { .. } => Self::Thinking {
                thinking: "",
                signature: "",
            },
            AnswerBlock::Redacted { data } => Self::RedactedThinking { data },
            AnswerBlock::Text { source, .. } => Self::Text {
                text: "",
                citations: source.as_ref().map(|_| Vec::new()),
            },
            AnswerBlock::Call { id, name, .. } => Self::ToolUse {
                id,
                name,
                input: Input::None {},
                caller: DIRECT,
            },
        }
    }
}

pub(super) fn whole(answer: &Answer, context: &CallContext<'_>) -> Reply {
    let usage = answer.counts.reported(context.script.usage);
    // Strings, numbers and checked raw values always serialize.
    let body = serde_json::to_vec(&Message::whole(answer, usage)).unwrap_or_default();
    Reply::json(StatusCode::OK, body)
}
