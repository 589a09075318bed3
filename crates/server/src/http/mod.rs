//! The public listener: HTTP in, engine calls, HTTP out.
//!
//! Start at `service`, which every request passes through. `endpoint` finds out which endpoint a
//! request names, `request` reads its headers and body, `handlers` calls the engine, and `response`
//! writes the headers and the body of the answer. `listener` accepts connections, `connection` runs
//! and times them, and `framing` checks where their requests end.

mod connection;
mod endpoint;
mod framing;
mod handlers;
mod listener;
mod panics;
mod request;
mod response;
mod service;

pub(crate) use connection::Gates;
#[cfg(fuzzing)]
pub use framing::any_requests;
pub(crate) use listener::{Limits, Public};
