//! Creates the items of an answer, and the response object around them.

use super::item::{HostedKind, Item, WireItem};
use super::parameters::Summary;
use super::repeated_members::RepeatedMembers;
use super::request::Request;
use super::usage::{TokenCounts, Usage};
use super::{id, input, reasoning};
use crate::call_context::CallContext;
use crate::catalog;
use crate::model::{ChunkedText, Finish, Output, respond};
use crate::openai::Refusal;
use crate::reply::Reply;
use crate::seed::Seed;
use http::StatusCode;
use serde::Serialize;

/// The number of sentences in one part of a summary.
const PART_SENTENCES: usize = 2;

/// A complete answer, ready to be written as one object or as a stream.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) id: String,
    pub(super) created: u64,
    pub(super) model: String,
    pub(super) items: Vec<Item>,
    pub(super) end: Ending,
    pub(super) counts: TokenCounts,
    pub(super) repeated: RepeatedMembers,
}

impl Answer {
    pub(super) fn of(request: Request, context: &CallContext<'_>) -> Self {
        let mut seed = context.seed.clone();
        let output = respond(&request.prompt, context.script, 0);
        let counts = TokenCounts::of(&request, &output, context.script);
        context.true_usage.set(Some(counts.true_usage()));
        Self {
            id: id::response(&mut seed),
            created: context.created,
            model: context.reported_model(),
            end: Ending::of(output.finish, context),
            counts,
            items: items(&output, &request, context, &mut seed),
            repeated: request.repeated,
        }
    }

    /// Turns the answer into one that fails with this refusal after it has begun.
    pub(super) fn refused(self, refusal: Refusal) -> Self {
        Self {
            items: Vec::new(),
            end: Ending::Failed {
                code: refusal.code.unwrap_or("server_error"),
                message: refusal.message,
            },
            ..self
        }
    }

    /// The status of an item in a finished answer. If the answer was cut, the last item is
    /// incomplete.
    pub(super) fn status_of(&self, index: usize) -> &'static str {
        if matches!(self.end, Ending::Incomplete { .. }) && index + 1 == self.items.len() {
            "incomplete"
        } else {
            "completed"
        }
    }
}

#[derive(Debug)]
pub(super) enum Ending {
    Completed,
    Incomplete { reason: String },
    Failed { code: &'static str, message: String },
}

impl Ending {
    fn of(finish: Finish, context: &CallContext<'_>) -> Self {
        if context.script.events.failure_after.is_some() {
            let error = Refusal::of_status(StatusCode::INTERNAL_SERVER_ERROR, context.name);
            return Self::Failed {
                code: "server_error",
                message: error.message,
            };
        }
        let reason = match finish {
            Finish::Length => Some("max_output_tokens"),
            Finish::Filter => Some("content_filter"),
            Finish::Stop | Finish::Calls => None,
        };
        match context.script.finish.as_deref().or(reason) {
            Some("completed") | None => Self::Completed,
            Some(reason) => Self::Incomplete {
                reason: reason.to_owned(),
            },
        }
    }

    /// The name of the final event.
    pub(super) fn event_name(&self) -> &'static str {
        match self {
            Self::Completed => "response.completed",
            Self::Incomplete { .. } => "response.incomplete",
            Self::Failed { .. } => "response.failed",
        }
    }
}

fn items(
    output: &Output,
    request: &Request,
    context: &CallContext<'_>,
    seed: &mut Seed,
) -> Vec<Item> {
    let parts = if context.script.reasoning.interleaved {
        output.calls.len()
    } else {
        1
    };
    let mut thoughts = output.reasoning_in_parts(parts).into_iter();
    let mut items = Vec::new();
    let mut before = PrecedingReasoning::default();
    if let Some(thought) = thoughts.next() {
        items.push(before.reason(thought, request, context, seed));
    }
    let hosted = context.script.hosted;
    for (kind, count) in [
        (HostedKind::WebSearch, hosted.searches),
        (HostedKind::FileSearch, hosted.file_searches),
        (HostedKind::CodeInterpreter, hosted.code_runs),
    ] {
        for _ in 0..count {
            items.push(Item::Hosted {
                id: id::item(kind.prefix(), before.id.as_deref(), seed),
                kind,
            });
        }
    }
    if !output.text.is_empty() || (output.calls.is_empty() && output.finish != Finish::Length) {
        items.push(Item::Message {
            id: id::item("msg", before.id.as_deref(), seed),
            text: output.text.clone(),
            refused: output.refused,
            phase: catalog::reasons(context.name).then_some(if output.calls.is_empty() {
                "final_answer"
            } else {
                "commentary"
            }),
            logprobs: request.logprobs,
            citation: output.citation.clone(),
        });
    }
    for (index, call) in output.calls.iter().enumerate() {
        if index > 0
            && let Some(thought) = thoughts.next()
        {
            items.push(before.reason(thought, request, context, seed));
        }
        let prefix = if call.custom { "ctc" } else { "fc" };
        items.push(Item::Call {
            id: id::item(prefix, before.id.as_deref(), seed),
            call_id: input::call_id(before.encrypted.as_deref(), seed),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            custom: call.custom,
        });
    }
    items
}

/// The latest reasoning item, to which the items after it are bound.
#[derive(Default)]
struct PrecedingReasoning {
    id: Option<String>,
    encrypted: Option<String>,
}

impl PrecedingReasoning {
    fn reason(
        &mut self,
        thought: ChunkedText,
        request: &Request,
        context: &CallContext<'_>,
        seed: &mut Seed,
    ) -> Item {
        let id = id::reasoning(seed);
        let encrypted = request
            .encrypted
            .then(|| reasoning::encrypt(context.name, &id, thought.as_str()));
        self.id = Some(id.clone());
        self.encrypted.clone_from(&encrypted);
        Item::Reasoning {
            id,
            summary: summary(thought.as_str(), request.summary),
            visible: catalog::shows_reasoning(context.name).then_some(thought),
            encrypted,
        }
    }
}

/// Splits the reasoning into the parts of a visible summary.
fn summary(thought: &str, wanted: Summary) -> Vec<ChunkedText> {
    let sentences: Vec<_> = thought.split_inclusive(". ").collect();
    let parts = match wanted {
        Summary::None => 0,
        Summary::Short => 1,
        Summary::Detailed => usize::MAX,
    };
    sentences
        .chunks(PART_SENTENCES)
        .take(parts)
        .map(|part| ChunkedText::new(part.concat().trim_end()))
        .collect()
}

/// The response object at the beginning or the end of an answer.
#[derive(Serialize)]
pub(super) struct Response<'a> {
    id: &'a str,
    object: &'static str,
    created_at: u64,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<u64>,
    error: Option<Error<'a>>,
    incomplete_details: Option<Details<'a>>,
    model: &'a str,
    output: Vec<WireItem<'a>>,
    usage: Option<Usage>,
    #[serde(flatten)]
    repeated: &'a RepeatedMembers,
}

#[derive(Serialize)]
struct Error<'a> {
    code: &'static str,
    message: &'a str,
}

#[derive(Serialize)]
struct Details<'a> {
    reason: &'a str,
}

impl<'a> Response<'a> {
    /// The response before its first item.
    pub(super) fn begun(answer: &'a Answer) -> Self {
        Self {
            id: &answer.id,
            object: "response",
            created_at: answer.created,
            status: "in_progress",
            completed_at: None,
            error: None,
            incomplete_details: None,
            model: &answer.model,
            output: Vec::new(),
            usage: None,
            repeated: &answer.repeated,
        }
    }

    pub(super) fn ended(answer: &'a Answer, usage: Option<Usage>) -> Self {
        let output = answer
            .items
            .iter()
            .enumerate()
            .map(|(index, item)| WireItem::whole(item, answer.status_of(index)))
            .collect();
        let begun = Self::begun(answer);
        match &answer.end {
            Ending::Completed => Self {
                status: "completed",
                completed_at: Some(answer.created + 1),
                output,
                usage,
                ..begun
            },
            Ending::Incomplete { reason } => Self {
                status: "incomplete",
                incomplete_details: Some(Details { reason }),
                output,
                usage,
                ..begun
            },
            Ending::Failed { code, message } => Self {
                status: "failed",
                error: Some(Error { code, message }),
                ..begun
            },
        }
    }
}

pub(super) fn whole(answer: &Answer, context: &CallContext<'_>) -> Reply {
    let response = Response::ended(answer, answer.counts.reported(context.script.usage));
    // Strings, numbers and checked raw values always serialize.
    let body = serde_json::to_vec(&response).unwrap_or_default();
    Reply::json(StatusCode::OK, body)
}
