//! Serves `POST /v1beta/interactions`, also under `/v1`: text and pictures without stored state.
//!
//! As with the vendor, unknown parameters are refused by name, an interaction that is not stored has an empty id, and
//! every answer begins with a signed thought. In a stream, an error that only the model detects is sent as an event,
//! but the HTTP status is that of the error, not 200.

mod answer;
mod call;
mod content;
mod input;
mod parameters;
mod plan;
mod request;
mod shape;
mod stream;
mod system;
mod tools;
mod usage;

pub(crate) use call::Interactions;
