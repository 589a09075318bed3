//! Questions of an operator to an upstream: one small call, or the list of its models. Nobody is charged for them,
//! and the journal does not show them.

mod ask;
mod channel;
mod models;

pub use channel::ProbeOutcome;
pub use models::{ModelsAnswer, ask_for_models};
