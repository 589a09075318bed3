//! The public listener: HTTP in, engine calls, HTTP out.
//!
//! Start at `service`, which every request passes through; `surface` says which endpoint it is.

mod body;
mod catalog;
mod catch;
mod charge;
mod cors;
mod credentials;
mod framing;
mod gates;
mod listener;
mod media;
mod pulse;
mod query;
mod range;
mod reply;
mod service;
mod socket;
mod streams;
mod surface;
mod tasks;
mod voice;
mod wakes;

#[cfg(fuzzing)]
pub use framing::any_requests;
pub(crate) use gates::Gates;
pub(crate) use listener::{Limits, Public};
