//! Requests, into the common form and out of it.

mod blocks;
mod read;
mod schema;
mod sent;
mod thinking;
mod tools;
mod turns;
mod write;

pub use read::read_request;
pub use write::write_request;
