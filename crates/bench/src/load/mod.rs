//! The load generator: many keep-alive connections that ask again as soon as they are answered, or
//! many sessions that speak as fast as people do.

mod client;
mod drive;
mod histogram;
mod hold;
mod request;
mod session;
mod speaker;
mod talk;
mod tally;

pub(crate) use drive::{Args, drive};
pub(crate) use hold::{Args as HoldArgs, OPEN, hold};
pub(crate) use request::Shape;
pub(crate) use tally::Measured;
