//! Tests of Interactions.

mod answer;
pub(crate) mod harness;
mod history;
mod refusal;
