//! Integration tests of the whole service: real HTTP, the real program, a scripted upstream.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed, and helpers are part of the tests"
)]

mod admin;
mod harness;
mod http;
mod images;
mod money;
mod operations;
mod secrecy;
mod streams;
mod tasks;
mod text;
mod upstreams;
mod voice;
