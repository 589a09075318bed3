//! The unstreamed answer.

use super::request::Request;
use super::shape::{Candidate, Content, Part, PromptFeedback, Response, SafetyRating};
use super::telling::{Telling, tellings};
use super::usage::{self, Usage};
use crate::ask::Ask;
use crate::google::{Figures, Refusal, indented};
use crate::reply::Reply;
use crate::seed::Seed;
use http::StatusCode;

/// What every event and the whole answer say alike.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    id: String,
    model: String,
}

impl Identity {
    pub(super) fn of(ask: &Ask<'_>, seed: &mut Seed) -> Self {
        Self {
            id: format!("Sim{}", seed.letters(20)),
            model: ask.reported_model(),
        }
    }

    pub(super) fn response<'a>(
        &'a self,
        candidates: &'a [Candidate],
        usage: Option<Usage>,
    ) -> Response<'a> {
        Response {
            candidates,
            prompt_feedback: None,
            usage_metadata: usage,
            model_version: &self.model,
            response_id: &self.id,
        }
    }

    /// The answer to a prompt that is not let through.
    pub(super) fn blocked<'a>(&'a self, reason: &'a str, usage: Option<Usage>) -> Response<'a> {
        Response {
            prompt_feedback: Some(PromptFeedback {
                block_reason: reason,
                safety_ratings: SafetyRating::blocking(),
            }),
            ..self.response(&[], usage)
        }
    }
}

pub(super) fn whole(request: &Request, ask: &Ask<'_>) -> Result<Reply, Refusal> {
    let mut seed = ask.seed.clone();
    let identity = Identity::of(ask, &mut seed);
    let (tellings, outputs) = tellings(request, ask, &mut seed)?;
    let figures = Figures::of(
        &request.prompt,
        &outputs,
        request.picture_tokens(),
        ask.script,
    );
    ask.used.set(Some(figures.used()));
    if let Some(reason) = &ask.script.text.blocked {
        let usage = usage::told(figures.unanswered(), ask.script.usage);
        return Ok(indented(StatusCode::OK, &identity.blocked(reason, usage)));
    }
    let candidates: Vec<_> = tellings.into_iter().map(candidate).collect();
    let usage = usage::told(figures, ask.script.usage);
    Ok(indented(
        StatusCode::OK,
        &identity.response(&candidates, usage),
    ))
}

fn candidate(telling: Telling) -> Candidate {
    let Telling {
        index,
        thoughts,
        text,
        picture,
        calls,
        signature,
        ending,
        logprobs,
    } = telling;
    let mut parts = Vec::new();
    if !thoughts.is_empty() {
        parts.push(Part::thought(thoughts.as_str()));
    }
    if !text.is_empty() {
        parts.push(Part::text(text.as_str()));
    }
    parts.extend(picture.map(Part::picture));
    let first_call = parts.len();
    parts.extend(calls.into_iter().map(Part::call));
    // The signature stands at the first call, or else at the last part that is no thought.
    let signed = if first_call < parts.len() {
        parts.get_mut(first_call)
    } else {
        parts.last_mut().filter(|part| part.thought.is_none())
    };
    if let Some(part) = signed {
        part.thought_signature = signature;
    }
    Candidate {
        content: Some(Content::new(parts)),
        ..ending.candidate(index)
    }
    .with_logprobs(text.as_str(), logprobs)
}
