//! The public listener: HTTP in, engine calls, HTTP out.
//!
//! `listener` accepts connections, `connection` and `serve_connection` run and time them, and `framing` checks where
//! their requests end. Every request passes through `service`: `endpoint` finds its endpoint, `request` reads it, a
//! handler in `handlers` calls the engine, and `response` writes the headers and the body of the answer.

mod callers_page;
mod connection;
mod context;
mod endpoint;
mod framing;
mod handlers;
mod in_process;
mod limits;
mod listener;
mod openapi;
mod panics;
mod percent;
mod request;
mod response;
mod serve_connection;
mod service;

pub(crate) use connection::ServeThreads;
pub(crate) use endpoint::is_callable_path;
#[cfg(fuzzing)]
pub use framing::any_requests;
pub(crate) use in_process::{InProcess, InProcessError};
pub(crate) use limits::Limits;
pub(crate) use listener::PublicListener;
