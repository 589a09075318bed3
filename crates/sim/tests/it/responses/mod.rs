//! Tests of the Responses protocol.

mod answer;
pub(crate) mod harness;
mod reasoning;
mod refusal;
