//! Converts whole answers of Generate Content from and to the common form.

pub(super) mod compose;
pub(super) mod finish;
pub(super) mod logprobs;
mod read;
pub(super) mod sources;
pub(super) mod write;

pub use read::read_response;
pub use write::write_response;
