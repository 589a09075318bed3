//! Converts whole interactions from and to the common form.

mod read;
pub(super) mod wire;
pub(super) mod write;

pub use read::read_response;
pub use write::write_response;
