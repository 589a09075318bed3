//! The Generate Content dialect, `POST /v1beta/models/{model}:generateContent` and its streaming
//! form.
//!
//! The path names the model and says whether the answer is streamed, so requests are read by
//! [`crate::native::read_named_head`]. Names of members may be in snake case or in camel case.

mod answer_layout;
mod call_id;
mod error;
mod head;
mod part;
mod pictures;
mod request;
mod response;
mod stream;
mod usage;

pub(crate) use answer_layout::ANSWER_LAYOUT;
pub(crate) use error::write_failure_event;
pub use error::{read_failure, write_failure};
pub(crate) use head::read_head;
pub use pictures::requested_grade;
pub use request::{read_request, write_request};
pub use response::{read_response, write_response};
pub(crate) use stream::write_events;
pub use stream::{Reader, Writer};
pub(crate) use usage::read_usage;
