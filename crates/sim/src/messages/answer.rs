//! What is answered, block by block, and how it ends.

use super::block::call_id;
use super::request::Request;
use super::signature;
use super::usage::Figures;
use crate::ask::Ask;
use crate::mind::{Finish, Output, Said, think};
use crate::seal::seal;
use crate::seed::Seed;
use serde::Serialize;

/// Words in a prompt by which thoughts are redacted; the second are the vendor's own.
const REDACTS: [&str; 2] = ["redact your thinking", "TRIGGER_REDACTED_THINKING"];
/// Characters of a text that its source is shown with.
const CITED_MAX: usize = 150;
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
    Text {
        said: Said,
        source: Option<Source>,
    },
    Call {
        id: String,
        name: String,
        input: Said,
    },
}

/// A page on the web that a text is said to come from.
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

/// How an answer ends.
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
    pub(super) fn of(request: &Request, ask: &Ask<'_>) -> Self {
        let mut seed = ask.seed.clone();
        let output = think(&request.prompt, ask.script, 0);
        let (question, _) = request.prompt.question();
        let figures = Figures::of(request, &output, ask.script);
        ask.used.set(Some(figures.used()));
        Self {
            id: format!("msg_01Sim{}", seed.letters(20)),
            model: ask.reported_model(),
            end: ending(&output, question, ask),
            figures,
            blocks: blocks(&output, request, ask, &mut seed),
        }
    }
}

fn blocks(output: &Output, request: &Request, ask: &Ask<'_>, seed: &mut Seed) -> Vec<Spoken> {
    let mut blocks = Vec::new();
    let (question, _) = request.prompt.question();
    let redacted =
        ask.script.reasoning.redacted || REDACTS.iter().any(|words| question.contains(words));
    let parts = if ask.script.reasoning.interleaved {
        output.calls.len()
    } else {
        1
    };
    let mut thoughts = output
        .reasoning_in_parts(parts)
        .into_iter()
        .map(|thought| Spoken::thought(thought, redacted, request, ask.name));
    blocks.extend(thoughts.next());
    if !output.text.is_empty() {
        blocks.push(Spoken::Text {
            said: output.text.clone(),
            source: Source::of(output, ask.name),
        });
    }
    for (index, call) in output.calls.iter().enumerate() {
        if index > 0 {
            blocks.extend(thoughts.next());
        }
        let thought = blocks.iter().rev().find_map(Spoken::opaque);
        blocks.push(Spoken::Call {
            id: call_id(thought, seed),
            name: call.name.clone(),
            input: call.arguments.clone(),
        });
    }
    blocks
}

impl Spoken {
    fn thought(thought: Said, redacted: bool, request: &Request, model: &str) -> Self {
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
            thought: Said::default(),
        }
    }

    /// What binds later calls to a thought.
    fn opaque(&self) -> Option<&str> {
        match self {
            Self::Thinking { signature, .. } => Some(signature),
            Self::Redacted { data } => Some(data),
            Self::Text { .. } | Self::Call { .. } => None,
        }
    }
}

fn ending(output: &Output, question: &str, ask: &Ask<'_>) -> Ending {
    let reason = match (output.refused, output.finish) {
        (_, Finish::Length) => "max_tokens",
        (true, _) | (_, Finish::Filter) => "refusal",
        (false, Finish::Calls) => "tool_use",
        (false, Finish::Stop) if output.stop.is_some() => "stop_sequence",
        (false, Finish::Stop) => "end_turn",
    };
    let mut end = Ending {
        stop_reason: ask
            .script
            .finish
            .clone()
            .unwrap_or_else(|| reason.to_owned()),
        stop_sequence: output.stop.clone(),
        stop_details: None,
    };
    if reason == "refusal" {
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
            explanation: category
                .map(|_| "This request was declined under the usage policy of sim-upstream.com."),
        });
    }
    end
}
