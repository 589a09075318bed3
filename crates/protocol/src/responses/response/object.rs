//! Writes the response object: the answer, and the members that repeat the request.

use crate::canon::{AnswerContext, Effort, Part, Request, Stop, ToolChoice};
use crate::failure::Failure;
use crate::json::write;
use crate::responses::request::{INSTRUCTIONS, write_choice, write_format, write_tool};
use crate::responses::usage::write_usage;
use crate::usage::Usage;

/// The text of a refusal for which the upstream sent none.
const REFUSED: &str = "The model refused to answer.";

/// The parts of the object that are the same in every event of a stream.
#[derive(Debug)]
pub(in crate::responses) struct Object {
    /// The members up to the status.
    head: Vec<u8>,
    /// The members that repeat the request, each after a comma.
    repeated: Vec<u8>,
}

/// Whether an answer is in progress, or how it ended.
#[derive(Debug)]
pub(in crate::responses) enum Ending<'a> {
    InProgress,
    Completed,
    /// The reason, if this dialect has a word for it.
    Incomplete(Option<&'static str>),
    Failed(&'a Failure),
}

/// Whether an answer contains text, a refusal, or both.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::responses) struct ContentKinds {
    text: bool,
    refusal: bool,
}

impl ContentKinds {
    /// Notes a piece of a text or of a refusal.
    pub(in crate::responses) fn note(&mut self, is_refusal: bool, words: &str) {
        self.refusal |= is_refusal && !words.is_empty();
        self.text |= !is_refusal && !words.is_empty();
    }

    /// The text to add if an answer with text was refused, and only the stop reason says so. Clients detect a
    /// refusal by its content part.
    pub(in crate::responses) fn missing_refusal(self, stop: &Stop) -> Option<&'static str> {
        let is_missing = matches!(stop, Stop::Refusal { .. }) && self.text && !self.refusal;
        is_missing.then_some(REFUSED)
    }
}

impl Ending<'_> {
    /// The ending of a finished answer. A refusal without text becomes a content filter stop, because
    /// clients detect a refusal by its content part.
    pub(in crate::responses) fn of(stop: &Stop, said: ContentKinds) -> Self {
        match stop {
            Stop::End | Stop::Sequence(_) | Stop::ToolCalls => Self::Completed,
            Stop::Refusal { .. } if said.text || said.refusal => Self::Completed,
            Stop::Length | Stop::ContextFull => Self::Incomplete(Some("max_output_tokens")),
            Stop::Refusal { .. } | Stop::Filter(_) => Self::Incomplete(Some("content_filter")),
            Stop::Paused => Self::Incomplete(None),
        }
    }

    /// The name of the last event.
    pub(in crate::responses) const fn event(&self) -> &'static str {
        match self {
            Self::InProgress => "response.in_progress",
            Self::Completed => "response.completed",
            Self::Incomplete(_) => "response.incomplete",
            Self::Failed(_) => "response.failed",
        }
    }

    const fn status(&self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Incomplete(_) => "incomplete",
            Self::Failed(_) => "failed",
        }
    }

    /// The status of a message that was open when the answer ended.
    pub(in crate::responses) const fn item_status(&self) -> &'static str {
        match self {
            Self::InProgress | Self::Completed => "completed",
            Self::Incomplete(_) | Self::Failed(_) => "incomplete",
        }
    }
}

impl Object {
    pub(in crate::responses) fn new(context: &AnswerContext) -> Self {
        let mut head = Vec::new();
        write::object(&mut head, |it| {
            it.text("id", &context.id).text("object", "response");
            it.number("created_at", context.created);
        });
        head.pop();
        let mut rest = Vec::new();
        write::object(&mut rest, |it| {
            it.text("model", &context.model);
            repeat(it, &context.request);
        });
        rest.pop();
        if let Some(first) = rest.first_mut() {
            *first = b',';
        }
        Self {
            head,
            repeated: rest,
        }
    }

    /// Writes the object. `output` holds the items without the brackets of the list.
    pub(in crate::responses) fn write(
        &self,
        out: &mut Vec<u8>,
        ending: &Ending<'_>,
        output: &[u8],
        usage: Option<&Usage>,
    ) {
        out.extend_from_slice(&self.head);
        out.extend_from_slice(b",\"status\":\"");
        out.extend_from_slice(ending.status().as_bytes());
        out.extend_from_slice(b"\",\"error\":");
        match ending {
            Ending::Failed(failure) => write::object(out, |it| {
                it.text("code", failure.code.as_str());
                it.text("message", &failure.message);
            }),
            _ => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b",\"incomplete_details\":");
        match ending {
            Ending::Incomplete(Some(reason)) => write::object(out, |it| {
                it.text("reason", reason);
            }),
            _ => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(&self.repeated);
        out.extend_from_slice(b",\"output\":[");
        out.extend_from_slice(output);
        out.extend_from_slice(b"],\"usage\":");
        match usage {
            Some(usage) => write_usage(out, usage),
            None => out.extend_from_slice(b"null"),
        }
        out.push(b'}');
    }
}

/// Writes the members that repeat the request. Clients expect them even if they are not set.
fn repeat(it: &mut write::Object<'_>, request: &Request) {
    let instructions = request.turns.first().and_then(|turn| turn.parts.first());
    it.text_or_null(
        "instructions",
        match instructions {
            Some((path, Part::Text(text))) if *path == INSTRUCTIONS => Some(text),
            _ => None,
        },
    );
    it.boolean("background", false).boolean("store", false);
    it.null("previous_response_id");
    match &request.metadata {
        Some(metadata) => it.raw("metadata", metadata.get()),
        None => it.raw("metadata", "{}"),
    };
    match request.output_tokens_max {
        Some(limit) => it.number("max_output_tokens", limit),
        None => it.null("max_output_tokens"),
    };
    it.null("max_tool_calls");
    for (name, value) in [
        ("temperature", &request.sampling.temperature),
        ("top_p", &request.sampling.top_p),
    ] {
        match value {
            Some(value) => it.number(name, value),
            None => it.null(name),
        };
    }
    let top = request.logprobs.and_then(|logprobs| logprobs.top);
    it.number("top_logprobs", top.unwrap_or(0));
    it.boolean(
        "parallel_tool_calls",
        request.parallel_tool_calls.unwrap_or(true),
    );
    it.value("tool_choice", |out| {
        write_choice(
            out,
            request.tool_choice.as_ref().unwrap_or(&ToolChoice::Auto),
        );
    });
    it.array("tools", |it| {
        for tool in &request.tools {
            it.object(|it| write_tool(it, tool));
        }
    });
    it.object("reasoning", |it| {
        let reasoning = request.reasoning.as_ref();
        let effort = reasoning.and_then(|reasoning| reasoning.effort);
        it.text_or_null("effort", effort.map(Effort::as_str));
        let show = reasoning.is_some_and(|reasoning| reasoning.show);
        it.text_or_null("summary", show.then_some("auto"));
    });
    it.object("text", |it| {
        it.object("format", |it| match &request.format {
            Some(format) => write_format(it, format),
            None => drop(it.text("type", "text")),
        });
        it.text(
            "verbosity",
            request.verbosity.as_deref().unwrap_or("medium"),
        );
    });
    it.text("truncation", "disabled");
    it.text("service_tier", "default");
    for (name, value) in [
        ("user", &request.user),
        ("safety_identifier", &request.safety_identifier),
        ("prompt_cache_key", &request.cache_key),
    ] {
        it.text_or_null(name, value.as_deref());
    }
}
