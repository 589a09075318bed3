//! Responses requests and the common form.

mod content;
mod history;
mod input;
mod read;
mod write;

pub(super) use read::INSTRUCTIONS;
pub use read::read_request;
pub use write::write_request;
pub(super) use write::{write_choice, write_format, write_tool};
