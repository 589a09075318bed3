//! Serves `POST /v1/responses`, and the count of its input tokens (`count.rs`).
//!
//! Reasoning is sent as items whose encrypted content is checked when a client sends it back (`reasoning.rs`). Input
//! items must obey the vendor's rules (`input.rs`). Nothing is stored, even if the request asks for it. Models named
//! `sim-reason...` reason by default and refuse sampling parameters. Models named `sim-open...` show their reasoning in
//! plain text.

mod answer;
mod call;
mod count;
mod event;
mod id;
mod input;
mod item;
mod parameters;
mod part;
mod reasoning;
mod repeated_members;
mod request;
mod stream;
mod tools;
mod usage;
mod writer;

pub(crate) use call::Responses;
pub(crate) use count::Count;
