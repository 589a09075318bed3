//! Converts Interactions requests from and to the common form.

mod read;
mod read_parts;
mod read_turns;
mod write;

pub use read::read_request;
pub use write::write_request;
