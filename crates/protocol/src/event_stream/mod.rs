//! Reads binary event streams (`application/vnd.amazon.eventstream`), which some model hosts send
//! in place of server-sent events.
//!
//! `message.rs` splits the bytes into messages and checks them. `to_sse.rs` turns messages into
//! server-sent events, so that the rest of the gateway reads only those.

mod message;
mod to_sse;

pub use message::{Malformed, Message};
pub use to_sse::ToSse;

/// The content type of a binary event stream.
pub const CONTENT_TYPE: &str = "application/vnd.amazon.eventstream";
