//! The Messages dialect, `POST /v1/messages`.

mod answer_layout;
mod call_id;
pub mod converse;
mod error;
mod fields;
mod head;
mod hosted;
mod redacted;
mod request;
mod response;
mod stream;
mod usage;

pub(crate) use answer_layout::ANSWER_LAYOUT;
pub(crate) use error::write_failure_event;
pub use error::{read_failure, write_failure};
pub(crate) use head::{read_counted_head, read_head};
pub use hosted::HostedMessages;
pub use request::{read_request, write_request};
pub use response::{read_response, write_response};
pub(crate) use stream::write_events;
pub use stream::{Reader, Writer};
