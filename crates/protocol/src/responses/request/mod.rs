//! Responses requests, from and into the common form.

pub(super) mod foreign_thoughts;
mod read;
mod read_parts;
mod read_turns;
mod write;
mod write_turns;

pub(super) use read::INSTRUCTIONS;
pub use read::read_request;
pub use write::write_request;
pub(super) use write::{write_choice, write_format, write_tool};
