//! What is answered, block by block, and the unstreamed form of it.

use super::block::call_id;
use super::request::Request;
use super::signature;
use super::usage::{Figures, Usage};
use crate::ask::Ask;
use crate::mind::{Finish, Output, Said, think};
use crate::reply::Reply;
use crate::seed::Seed;
use http::StatusCode;
use serde::Serialize;
use serde_json::value::RawValue;

/// Words in a prompt by which thoughts are redacted; the second are the vendor's own.
const REDACTS: [&str; 2] = ["redact your thinking", "TRIGGER_REDACTED_THINKING"];
const CATEGORIES: [&str; 5] = [
    "cyber",
    "bio",
    "frontier_llm",
    "reasoning_extraction",
    "general_harms",
];

/// An answer, ready to be written.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) id: String,
    pub(super) model: String,
    pub(super) blocks: Vec<Spoken>,
    pub(super) end: Ending,
    pub(super) figures: Figures,
}

/// One block of an answer.
#[derive(Debug)]
pub(super) enum Spoken {
    Thinking {
        thought: Said,
        signature: String,
    },
    Redacted {
        data: String,
    },
    Text(Said),
    Call {
        id: String,
        name: String,
        input: Said,
    },
}

/// How an answer ends.
#[derive(Debug, Clone, Serialize)]
#[expect(clippy::struct_field_names, reason = "the names of the wire")]
pub(super) struct Ending {
    pub(super) stop_reason: &'static str,
    pub(super) stop_sequence: Option<String>,
    pub(super) stop_details: Option<StopDetails>,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct StopDetails {
    r#type: &'static str,
    category: Option<&'static str>,
    explanation: Option<&'static str>,
}

impl Answer {
    pub(super) fn of(request: &Request, ask: &Ask<'_>) -> Self {
        let mut seed = ask.seed.clone();
        let output = think(&request.prompt, ask.script, 0);
        let (question, _) = request.prompt.question();
        Self {
            id: format!("msg_01Sim{}", seed.letters(20)),
            model: ask.reported_model(),
            end: ending(&output, question, ask),
            figures: Figures::of(request, &output, ask.script),
            blocks: blocks(&output, request, ask, &mut seed),
        }
    }
}

fn blocks(output: &Output, request: &Request, ask: &Ask<'_>, seed: &mut Seed) -> Vec<Spoken> {
    let mut blocks = Vec::new();
    let thought = output.reasoning.as_str();
    let (question, _) = request.prompt.question();
    let redacted =
        ask.script.reasoning.redacted || REDACTS.iter().any(|words| question.contains(words));
    let mut opaque = None;
    if !thought.is_empty() {
        let spoken = if redacted {
            let data = signature::redact(ask.name, thought);
            opaque = Some(data.clone());
            Spoken::Redacted { data }
        } else {
            let (thought, signature) = if request.thinking.shown {
                (output.reasoning.clone(), signature::sign(ask.name, thought))
            } else {
                (Said::default(), signature::sign_omitted(ask.name, thought))
            };
            opaque = Some(signature.clone());
            Spoken::Thinking { thought, signature }
        };
        blocks.push(spoken);
    }
    if !output.text.is_empty() {
        blocks.push(Spoken::Text(output.text.clone()));
    }
    for call in &output.calls {
        blocks.push(Spoken::Call {
            id: call_id(opaque.as_deref(), seed),
            name: call.name.clone(),
            input: call.arguments.clone(),
        });
    }
    blocks
}

fn ending(output: &Output, question: &str, ask: &Ask<'_>) -> Ending {
    let mut end = Ending {
        stop_reason: match (output.refused, output.finish) {
            (_, Finish::Length) => "max_tokens",
            (true, _) | (_, Finish::Filter) => "refusal",
            (false, Finish::Calls) => "tool_use",
            (false, Finish::Stop) if output.stop.is_some() => "stop_sequence",
            (false, Finish::Stop) => "end_turn",
        },
        stop_sequence: output.stop.clone(),
        stop_details: None,
    };
    if end.stop_reason == "refusal" {
        end.stop_sequence = None;
        // What the vendor's filter stops has no category.
        let category = (output.refused && output.finish != Finish::Filter).then(|| {
            let named = ask.script.text.refuse.as_deref().unwrap_or(question);
            let found = CATEGORIES.into_iter().find(|word| named.contains(word));
            found.unwrap_or("general_harms")
        });
        end.stop_details = Some(StopDetails {
            r#type: "refusal",
            category,
            explanation: category.map(
                |_| "This request was declined under the usage policy of sim-upstream.example.",
            ),
        });
    }
    end
}

/// The message as it stands in a body, and without its content in the first event of a stream.
#[derive(Serialize)]
pub(super) struct Message<'a> {
    model: &'a str,
    id: &'a str,
    r#type: &'static str,
    role: &'static str,
    content: Vec<Block<'a>>,
    stop_reason: Option<&'static str>,
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
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: Input<'a>,
        caller: Caller,
    },
}

/// The input of a call. What a limit has cut is no JSON any more and is left out.
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
    /// The message before anything is said.
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
            stop_reason: Some(answer.end.stop_reason),
            stop_sequence: answer.end.stop_sequence.as_deref(),
            stop_details: answer.end.stop_details.as_ref(),
            ..Self::begun(answer, usage)
        }
    }
}

impl<'a> Block<'a> {
    fn whole(spoken: &'a Spoken) -> Self {
        match spoken {
            Spoken::Thinking { thought, signature } => Self::Thinking {
                thinking: thought.as_str(),
                signature,
            },
            Spoken::Redacted { data } => Self::RedactedThinking { data },
            Spoken::Text(text) => Self::Text {
                text: text.as_str(),
            },
            Spoken::Call { id, name, input } => Self::ToolUse {
                id,
                name,
                input: serde_json::from_str(input.as_str()).map_or(Input::None {}, Input::Whole),
                caller: DIRECT,
            },
        }
    }

    /// The block before anything of it is said.
    pub(super) fn begun(spoken: &'a Spoken) -> Self {
        match spoken {
            Spoken::Thinking { .. } => Self::Thinking {
                thinking: "",
                signature: "",
            },
            Spoken::Redacted { data } => Self::RedactedThinking { data },
            Spoken::Text(_) => Self::Text { text: "" },
            Spoken::Call { id, name, .. } => Self::ToolUse {
                id,
                name,
                input: Input::None {},
                caller: DIRECT,
            },
        }
    }
}

pub(super) fn whole(answer: &Answer, ask: &Ask<'_>) -> Reply {
    let usage = answer.figures.told(ask.script.usage);
    // Texts, numbers and checked raw values always serialize.
    let body = serde_json::to_vec(&Message::whole(answer, usage)).unwrap_or_default();
    Reply::json(StatusCode::OK, body)
}
