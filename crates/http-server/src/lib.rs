//! The public listener: HTTP in, engine calls, HTTP out.
//!
//! `listener` accepts connections, `connection` and `serve_connection` run and time them, and `framing` checks where
//! their requests end. Every request passes through `service`: `endpoint` finds its endpoint, `request` reads it, a
//! handler in `handlers` calls the engine, and `response` writes the headers and the body of the answer.
//!
//! [`TlsAcceptor`], [`Assets`], [`file_stamp`] and [`abilities`] are also for the operators' listener, which this crate
//! does not know.

mod assets;
mod callers_page;
mod connection;
mod context;
mod endpoint;
mod file_stamp;
mod framing;
mod handlers;
mod in_process;
mod limits;
mod listener;
mod model_facts;
mod openapi;
mod panics;
mod percent;
mod request;
mod response;
mod serve_connection;
mod service;
mod tls;

pub use assets::{Asset, Assets, Lifetime};
pub use connection::{ServeThreads, WaitLimits};
pub use endpoint::is_callable_path;
pub use file_stamp::{FileStamp, file_stamp};
#[cfg(fuzzing)]
pub use framing::any_requests;
pub use in_process::{InProcess, InProcessError};
pub use limits::Limits;
pub use listener::PublicListener;
pub use model_facts::abilities;
pub use tls::{
    HTTP_1, HTTP_1_AND_2, HttpVersions, TlsAcceptor, TlsFiles, load as load_certificate,
};
