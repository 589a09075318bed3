//! Amazon Bedrock: checks signed requests, reads the model from the path, and sends errors and binary streams in the
//! form of this cloud.
//!
//! | path | protocol |
//! |---|---|
//! | `/model/{id}/invoke`, `…/invoke-with-response-stream` | Messages without `model` and `stream` (`invoke.rs`) |
//! | `/model/{id}/converse`, `…/converse-stream` | Converse, one wire format for all models (`converse.rs`) |
//! | `/anthropic/v1/messages`, `/openai/v1/…` | the vendors' own protocols, only for signed requests: others belong to Azure (`cloud/`) |
//!
//! If a request is signed, its signature is checked, whatever its path (`signature.rs`).

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
