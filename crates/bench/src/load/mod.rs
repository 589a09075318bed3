//! The load generator: many keep-alive connections, or many sessions that send audio in real time. A connection sends
//! its next request as soon as the last one is answered.

mod args;
mod client;
mod drive;
mod frame_sender;
mod histogram;
mod hold;
mod request;
mod session;
mod sessions;
mod tally;

pub(crate) use args::Args;
pub(crate) use drive::drive;
pub(crate) use hold::{Args as HoldArgs, OPEN, hold};
pub(crate) use request::Shape;
pub(crate) use tally::Measured;
