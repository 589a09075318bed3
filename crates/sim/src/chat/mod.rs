//! `POST /v1/chat/completions`.

mod answer;
mod audio;
mod delta;
mod logprobs;
mod messages;
mod parameters;
mod request;
mod speaker;
mod stream;
mod strict;
mod tools;
mod usage;

use crate::ask::Ask;
use crate::fault::Instead;
use crate::openai::Refusal;
use crate::reply::Reply;
use serde_json::Value;

pub(crate) use request::{model_of, parse};
pub(crate) use stream::{empty_object, error_in_200};

/// The answer to a call.
pub(crate) fn answer(request: &Value, ask: &Ask<'_>) -> Result<Reply, Refusal> {
    let request = request::read(request, ask)?;
    let swapped = ask.script.instead == Some(Instead::Swapped);
    match (request.streaming.wanted, swapped) {
        (true, false) | (false, true) => stream::stream(&request, ask),
        (false, false) | (true, true) => answer::whole(&request, ask),
    }
}
