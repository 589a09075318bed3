//! The Messages dialect, `POST /v1/messages`.

mod call_id;
mod error;
mod fields;
mod head;
mod places;
mod redacted;
mod request;
mod response;
mod stream;
mod usage;

pub use error::{read_failure, write_failure, write_failure_event};
pub(crate) use head::{read_counted_head, read_head};
pub(crate) use places::PLACES;
pub use request::{read_request, write_request};
pub use response::{read_response, write_response};
pub(crate) use stream::write_events;
pub use stream::{Reader, Writer};
pub use usage::read_usage;
