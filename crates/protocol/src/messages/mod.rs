//! The Messages dialect, `POST /v1/messages`.

mod answer;
mod calls;
mod error;
mod fields;
mod foreign;
mod head;
mod places;
mod redacted;
mod request;
mod usage;

pub use answer::{Reader, Writer, read_response, write_response};
pub use error::{read_failure, write_failure, write_failure_event};
pub(crate) use head::{read_counted_head, read_head};
pub(crate) use places::PLACES;
pub use request::{read_request, write_request};
pub use usage::read_usage;
