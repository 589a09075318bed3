//! The Generate Content dialect, `POST /v1beta/models/{model}:generateContent` and its streaming
//! form.
//!
//! Model and delivery stand in the path, so that requests are read by
//! [`crate::native::read_named_head`]. Every member may be spelt in snake or in camel case.

mod error;
mod head;
mod places;
mod usage;

pub use error::{read_failure, write_failure, write_failure_event};
pub(crate) use head::read_head;
pub(crate) use places::PLACES;
pub use usage::read_usage;
