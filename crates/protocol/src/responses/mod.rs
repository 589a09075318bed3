//! The Responses dialect, `POST /v1/responses`.

mod answer_layout;
mod error;
mod head;
mod request;
mod response;
mod stream;
mod usage;

pub(crate) use answer_layout::ANSWER_LAYOUT;
pub use error::{read_failure, write_failure};
pub(crate) use error::{write_failure_event, write_first_failure};
pub(crate) use head::read_head;
pub use request::{read_request, write_request};
pub use response::{read_response, write_response};
pub(crate) use stream::write_events;
pub use stream::{Reader, Writer};
