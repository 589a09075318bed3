//! The unstreamed answer.

use super::request::Request;
use super::shape::Interaction;
use super::telling::{Telling, Told, tell};
use super::usage;
use crate::ask::Ask;
use crate::google::{Refusal, one_line};
use crate::reply::Reply;
use http::StatusCode;

pub(super) fn whole(request: &Request, ask: &Ask<'_>) -> Result<Reply, Refusal> {
    let Telling {
        identity,
        steps,
        ending,
        figures,
    } = tell(request, ask)?;
    let usage = usage::told(figures, ask.script.usage);
    let interaction = Interaction {
        steps: Some(steps.into_iter().map(Told::whole).collect()),
        ..identity.ended(&ending, usage)
    };
    Ok(one_line(StatusCode::OK, &interaction))
}
