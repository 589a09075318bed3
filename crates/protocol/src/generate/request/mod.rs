//! Converts Generate Content requests from and to the common form.

mod draft;
mod read;
mod read_parts;
mod read_turns;
mod schema;
pub(super) mod tool_names;
mod write;
mod write_config;

pub use read::read_request;
pub use write::write_request;
