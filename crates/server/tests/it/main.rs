//! The whole service from outside: real HTTP, the real program, a scripted upstream.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed, and helpers are part of the tests"
)]

mod admission;
mod auth;
mod balance;
mod catalog;
mod chat_plain;
mod chat_stream;
mod framing;
mod harness;
mod limits;
mod refusals;
