//! The operators' listener: health, readiness and metrics.
//!
//! It never shares a port with the public listener. Its endpoints need no token and reveal no secret.
//! Every other path requires the token, and is not found with it.

#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the listener serves it once the admin API exists")
)]
mod console;
mod listener;

pub(crate) use listener::AdminListener;
