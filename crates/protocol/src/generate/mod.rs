//! The Generate Content dialect, `POST /v1beta/models/{model}:generateContent` and its streaming
//! form.
//!
//! Model and delivery stand in the path, so that requests are read by
//! [`crate::native::read_named_head`]. Every member may be spelt in snake or in camel case.

mod call_id;
mod compose;
mod config;
mod contents;
mod datum;
mod error;
mod finish;
mod head;
mod logprobs;
mod names;
mod part;
mod pictures;
mod places;
mod reader;
mod request;
mod schema;
mod sources;
mod usage;
mod write;
mod writer;

use call_id::call_id;

pub use error::{read_failure, write_failure, write_failure_event};
pub(crate) use head::read_head;
pub use pictures::asked_grade;
pub(crate) use places::PLACES;
pub use reader::{Reader, read_response};
pub use request::read_request;
pub use usage::read_usage;
pub use write::write_request;
pub use writer::{Writer, write_response};
