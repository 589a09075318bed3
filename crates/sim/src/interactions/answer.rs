//! Writes the whole answer of a call that is not streamed.

use super::plan::{InteractionPlan, PlannedStep, plan};
use super::request::Request;
use super::shape::Interaction;
use super::usage;
use crate::call_context::CallContext;
use crate::google::{Refusal, one_line};
use crate::reply::Reply;
use http::StatusCode;

pub(super) fn whole(request: &Request, context: &CallContext<'_>) -> Result<Reply, Refusal> {
    let InteractionPlan {
        identity,
        steps,
        ending,
        counts,
    } = plan(request, context)?;
    let usage = usage::reported(counts, context.script.usage);
    let interaction = Interaction {
        steps: Some(steps.into_iter().map(PlannedStep::whole).collect()),
        ..identity.ended(&ending, usage)
    };
    Ok(one_line(StatusCode::OK, &interaction))
}
