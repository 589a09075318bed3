//! Messages requests, from and into the common form.

pub(super) mod foreign_thoughts;
mod read;
mod read_parts;
mod schema;
mod sendable;
mod thinking;
mod tools;
mod write;
mod write_turns;

pub use read::read_request;
pub use write::write_request;
