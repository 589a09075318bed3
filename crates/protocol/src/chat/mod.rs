//! The Chat Completions dialect, `POST /v1/chat/completions`.

mod error;
mod head;
mod places;
mod request;
mod response;
mod stream;
mod usage;

pub use error::{read_failure, write_failure, write_failure_event};
pub(crate) use head::read_head;
pub(crate) use places::PLACES;
pub use request::{read_request, write_request};
pub use response::{read_response, write_response};
pub(crate) use stream::write_events;
pub use stream::{Reader, Writer};
pub use usage::read_usage;
