//! Creates the blocks of an answer, and decides how it ends.

use super::block::call_id;
use super::request::Request;
use super::signature;
use super::usage::TokenCounts;
use crate::call_context::CallContext;
use crate::model::{ChunkedText, Finish, Output, respond};
use crate::seal::seal;
use crate::seed::Seed;
use serde::Serialize;

/// Phrases in a prompt that make the model redact its thoughts. The second is from the vendor's own test string.
const REDACTION_PHRASES: [&str; 2] = ["redact your thinking", "TRIGGER_REDACTED_THINKING"];
/// The maximum number of characters of a text that are quoted with its source.
const CITED_MAX: usize = 150;
const CATEGORIES: [&str; 5] = [
    "cyber",
    "bio",
    "frontier_llm",
    "reasoning_extraction",
    "general_harms",
];

/// A complete answer, ready to be written as a message or as a stream.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) id: String,
    pub(super) model: String,
    pub(super) blocks: Vec<AnswerBlock>,
    pub(super) end: Ending,
    pub(super) counts: TokenCounts,
}

#[derive(Debug)]
pub(super) enum AnswerBlock {
    Thinking {
        thought: ChunkedText,
        signature: String,
    },
    Redacted {
        data: String,
    },
    Text {
        text: ChunkedText,
        source: Option<Source>,
    },
    Call {
        id: String,
        name: String,
        input: ChunkedText,
    },
}

/// The web page that is cited as the source of a text.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Source {
    r#type: &'static str,
    cited_text: String,
    url: String,
    title: String,
    encrypted_index: String,
}

impl Source {
    fn of(output: &Output, model: &str) -> Option<Self> {
        let citation = output.citation.as_ref()?;
        Some(Self {
            r#type: "web_search_result_location",
            cited_text: output.text.as_str().chars().take(CITED_MAX).collect(),
            url: citation.url.clone(),
            title: citation.title.clone(),
            encrypted_index: seal("messages citation", model, &citation.url),
        })
    }
}

#[derive(Debug, Clone, Serialize)]
#[expect(clippy::struct_field_names, reason = "the names of the wire")]
pub(super) struct Ending {
    pub(super) stop_reason: String,
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
    pub(super) fn of(request: &Request, context: &CallContext<'_>) -> Self {
        let mut seed = context.seed.clone();
        let output = respond(&request.prompt, context.script, 0);
        let (question, _) = request.prompt.question();
        let counts = TokenCounts::of(request, &output, context.script);
        context.true_usage.set(Some(counts.true_usage()));
        Self {
            id: format!("msg_01Sim{}", seed.letters(20)),
            model: context.reported_model(),
            end: ending(&output, question, context),
            counts,
            blocks: blocks(&output, request, context, &mut seed),
        }
    }
}

fn blocks(
    output: &Output,
    request: &Request,
    context: &CallContext<'_>,
    seed: &mut Seed,
) -> Vec<AnswerBlock> {
    let mut blocks = Vec::new();
    let (question, _) = request.prompt.question();
    let redacted = context.script.reasoning.redacted
        || REDACTION_PHRASES
            .iter()
            .any(|words| question.contains(words));
    let parts = if context.script.reasoning.interleaved {
        output.calls.len()
    } else {
        1
    };
    let mut thoughts = output
        .reasoning_in_parts(parts)
        .into_iter()
        .map(|thought| AnswerBlock::thought(thought, redacted, request, context.name));
    blocks.extend(thoughts.next());
    if !output.text.is_empty() {
        blocks.push(AnswerBlock::Text {
            text: output.text.clone(),
            source: Source::of(output, context.name),
        });
    }
    for (index, call) in output.calls.iter().enumerate() {
        if index > 0 {
            blocks.extend(thoughts.next());
        }
        let thought = blocks.iter().rev().find_map(AnswerBlock::opaque);
        blocks.push(AnswerBlock::Call {
            id: call_id(thought, seed),
            name: call.name.clone(),
            input: call.arguments.clone(),
        });
    }
    blocks
}

impl AnswerBlock {
    fn thought(thought: ChunkedText, redacted: bool, request: &Request, model: &str) -> Self {
        let text = thought.as_str();
        if redacted {
            let data = signature::redact(model, text);
            return Self::Redacted { data };
        }
        if request.thinking.shown {
            let signature = signature::sign(model, text);
            return Self::Thinking { thought, signature };
        }
        Self::Thinking {
            signature: signature::sign_omitted(model, text),
            thought: ChunkedText::default(),
        }
    }

    /// The signature or the redacted data, which binds calls to the thought before them.
    fn opaque(&self) -> Option<&str> {
        match self {
            Self::Thinking { signature, .. } => Some(signature),
            Self::Redacted { data } => Some(data),
            Self::Text { .. } | Self::Call { .. } => None,
        }
    }
}

fn ending(output: &Output, question: &str, context: &CallContext<'_>) -> Ending {
    let reason = match (output.refused, output.finish) {
        (_, Finish::Length) => "max_tokens",
        (true, _) | (_, Finish::Filter) => "refusal",
        (false, Finish::Calls) => "tool_use",
        (false, Finish::Stop) if output.stop.is_some() => "stop_sequence",
        (false, Finish::Stop) => "end_turn",
    };
    let mut end = Ending {
        stop_reason: context
            .script
            .finish
            .clone()
            .unwrap_or_else(|| reason.to_owned()),
        stop_sequence: output.stop.clone(),
        stop_details: None,
    };
    if reason == "refusal" {
        end.stop_sequence = None;
        // An answer that the vendor's filter stopped has no category.
        let category = (output.refused && output.finish != Finish::Filter).then(|| {
            let named = context.script.text.refuse.as_deref().unwrap_or(question);
            let found = CATEGORIES.into_iter().find(|word| named.contains(word));
            found.unwrap_or("general_harms")
        });
        end.stop_details = Some(StopDetails {
            r#type: "refusal",
            category,
            explanation: category
                .map(|_| "This request was declined under the usage policy of sim-upstream.com."),
        });
    }
    end
}
