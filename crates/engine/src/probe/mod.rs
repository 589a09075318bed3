//! Requests to an upstream on behalf of an operator: one small call, or the list of its models. No wallet pays for
//! them, and they leave no journal row.

mod ask;
mod channel;
mod models;

pub use channel::ProbeOutcome;
pub use models::{ModelsAnswer, ask_for_models};
