//! The load generator: many keep-alive connections that ask again as soon as they are answered.

mod client;
mod drive;
mod histogram;
mod hold;
mod request;

pub(crate) use drive::{Args, Measured, drive};
pub(crate) use hold::{Args as HoldArgs, OPEN, hold};
pub(crate) use request::Shape;
