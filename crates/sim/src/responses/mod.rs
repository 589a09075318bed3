//! `POST /v1/responses`.
//!
//! Beside what prompts and scripts steer everywhere, reasoning comes as items whose encrypted
//! content is checked when it comes back (`reasoning.rs`), and the input's items are held to the
//! vendor's rules (`input.rs`). Nothing is stored, whatever the request says. Models named
//! `sim-reason...` reason by themselves and take no sampling parameters; those named `sim-open...`
//! show their reasoning as it is.

mod answer;
mod call;
mod count;
mod echo;
mod event;
mod id;
mod input;
mod item;
mod parameters;
mod part;
mod reasoning;
mod request;
mod stream;
mod tools;
mod usage;
mod writer;

pub(crate) use call::Responses;
pub(crate) use count::Count;
