//! Writes the whole answer of a call that is not streamed.

use super::plan::{CandidatePlan, plans};
use super::request::Request;
use super::shape::{Candidate, Content, Part, PromptFeedback, Response, SafetyRating};
use super::usage::{self, Usage};
use crate::call_context::CallContext;
use crate::google::{Refusal, TokenCounts, indented};
use crate::reply::Reply;
use crate::seed::Seed;
use http::StatusCode;

/// The members that are the same in every event and in the whole answer.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    id: String,
    model: String,
}

impl Identity {
    pub(super) fn of(context: &CallContext<'_>, seed: &mut Seed) -> Self {
        Self {
            id: format!("Sim{}", seed.letters(20)),
            model: context.reported_model(),
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

    /// The answer to a blocked prompt.
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

pub(super) fn whole(request: &Request, context: &CallContext<'_>) -> Result<Reply, Refusal> {
    let mut seed = context.seed.clone();
    let identity = Identity::of(context, &mut seed);
    let (plans, outputs) = plans(request, context, &mut seed)?;
    let counts = TokenCounts::of(
        &request.prompt,
        &outputs,
        request.picture_tokens(),
        context.script,
    );
    context.true_usage.set(Some(counts.true_usage()));
    if let Some(reason) = &context.script.text.blocked {
        let usage = usage::reported(counts.unanswered(), context.script.usage);
        return Ok(indented(StatusCode::OK, &identity.blocked(reason, usage)));
    }
    let candidates: Vec<_> = plans.into_iter().map(candidate).collect();
    let usage = usage::reported(counts, context.script.usage);
    Ok(indented(
        StatusCode::OK,
        &identity.response(&candidates, usage),
    ))
}

fn candidate(plan: CandidatePlan) -> Candidate {
    let CandidatePlan {
        index,
        thoughts,
        text,
        picture,
        calls,
        signature,
        ending,
        logprobs,
    } = plan;
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
    // The first call is signed. Without a call, the last part is signed, unless it is a thought.
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
