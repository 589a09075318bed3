//! Chat requests, from and into the common form.

mod history;
mod messages;
mod parts;
mod read;
mod write;

pub(super) use messages::write_extra;
pub use read::read_request;
pub use write::write_request;

/// The extension in which some clients and upstreams keep a tool call's thought signature:
/// `extra_content.google.thought_signature`.
pub(super) const EXTRA: [&str; 3] = ["extra_content", "google", "thought_signature"];
