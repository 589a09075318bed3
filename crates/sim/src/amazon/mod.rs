//! What is particular to models at Amazon Bedrock: signed requests, its errors, models named by the path, and streams
//! of binary frames.
//!
//! | path | what |
//! |---|---|
//! | `/model/{id}/invoke`, `…/invoke-with-response-stream` | Messages without `model` and `stream` (`invoke.rs`) |
//! | `/model/{id}/converse`, `…/converse-stream` | any model in one notation (`converse.rs`) |
//! | `/anthropic/v1/messages`, `/openai/v1/…` | the vendors' own protocols |
//!
//! A signature is checked on every path (`signature.rs`).

mod converse;
mod converse_answer;
mod converse_request;
mod frame;
mod invoke;
mod refusal;
mod signature;

pub(crate) use converse::{Converse, is_converse};
pub(crate) use invoke::{Invoke, is_target};
pub(crate) use refusal::{no_such_path, too_large};
pub(crate) use signature::check_signature;
