//! Interactions requests, from and into the common form.

mod read;
mod read_parts;
mod read_turns;
mod write;

pub use read::read_request;
pub use write::write_request;
