//! The Interactions dialect, text path, `POST /v1beta/interactions`.

mod error;
mod head;
mod places;
mod request;
mod response;
mod stream;
mod usage;

pub use error::{read_failure, write_failure, write_failure_event};
pub(crate) use head::{asks_for_video, read_head};
pub(crate) use places::PLACES;
pub use request::{read_request, write_request};
pub use response::{read_response, write_response};
pub(crate) use stream::write_events;
pub use stream::{Reader, Writer};
pub use usage::read_usage;
