//! Tests of Generate Content.

mod answer;
pub(crate) mod harness;
mod history;
mod refusal;
