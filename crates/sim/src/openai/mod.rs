//! What the endpoints of the `OpenAI` family share: refusals, credentials, member checks.

mod auth;
mod body;
mod member;
mod refusal;

pub(crate) use auth::authorise;
pub(crate) use body::{model_of, parse};
pub(crate) use member::{Member, type_name};
pub(crate) use refusal::{Refusal, error_json, failure, of_status};
