//! The Chat Completions dialect, `POST /v1/chat/completions`.

mod error;
mod head;
mod places;
mod usage;

pub use error::{read_failure, write_failure, write_failure_event};
pub(crate) use head::read_head;
pub(crate) use places::PLACES;
pub use usage::read_usage;
