//! Whole messages, from and into the common form.

mod read;
pub(super) mod stop;
pub(super) mod wire;
pub(super) mod write;

pub use read::read_response;
pub use write::write_response;
