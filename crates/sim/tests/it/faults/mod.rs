//! Tests scripts over real sockets.

mod chat;
mod named_events;
