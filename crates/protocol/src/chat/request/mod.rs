//! Converts chat requests from and to the common form.

mod read;
mod read_parts;
mod read_turns;
mod write;
mod write_turns;

pub use read::read_request;
pub use write::write_request;
pub(super) use write_turns::write_extra;

/// The path of the extension member in which some clients and upstreams keep a tool call's thought signature.
pub(super) const EXTRA: [&str; 3] = ["extra_content", "google", "thought_signature"];
