//! Whole messages, into the common form and out of it.

mod read;
pub(super) mod stop;
pub(super) mod wire;
pub(super) mod write;

pub use read::read_response;
pub use write::write_response;
