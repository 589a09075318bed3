//! Tests of calls over real sockets, against a scripted upstream.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests stand outside of the test functions"
)]

mod broken;
mod deadlines;
mod event_streams;
mod guarded;
mod health;
mod pooling;
mod tokens;
mod wire;

mod upstream_script;
