//! Code shared by the endpoints of the `OpenAI` family: refusals, credentials, member checks.

mod auth;
mod body;
mod logprobs;
mod member;
mod metadata;
mod name;
mod refusal;
pub(crate) mod strict;

pub(crate) use auth::authorise;
pub(crate) use body::{model_of, parse};
pub(crate) use logprobs::{TokenLogprob, logprobs};
pub(crate) use member::{Member, type_name};
pub(crate) use metadata::check_metadata;
pub(crate) use name::read_name;
pub(crate) use refusal::{JsonErrors, Refusal, bad_image, error_json, failure, of_status};
