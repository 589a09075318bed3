//! Tests of the Messages protocol.

mod answer;
pub(crate) mod harness;
mod refusal;
mod thinking;
