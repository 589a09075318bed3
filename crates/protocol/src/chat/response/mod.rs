//! Converts whole completions from and to the common form.

pub(super) mod message;
mod read;
pub(super) mod wire;
mod write;

pub use read::read_response;
pub use write::write_response;
