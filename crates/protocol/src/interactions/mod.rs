//! The Interactions dialect for text, `POST /v1beta/interactions`.

mod answer_layout;
mod error;
mod head;
mod request;
mod response;
mod stream;
mod system_instruction;
mod usage;

pub(crate) use answer_layout::ANSWER_LAYOUT;
pub(crate) use error::write_failure_event;
pub use error::{read_failure, write_failure};
pub(crate) use head::{asks_for_video, read_head};
pub use request::{read_request, write_request};
pub use response::{read_response, write_response};
pub(crate) use stream::write_events;
pub use stream::{Reader, Writer};
