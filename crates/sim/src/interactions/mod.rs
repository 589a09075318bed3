//! `POST /v1beta/interactions`, also under `/v1`: the path for text, without state.
//!
//! As the vendor does it: parameters it does not know are refused by name, an interaction that is
//! not stored has an empty id, every answer begins with a signed thought, and what is found wrong
//! only by the model is told as an event under status 400 where a stream was asked for.

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
