//! The Chat Completions dialect, `POST /v1/chat/completions`.

mod answer_layout;
mod error;
mod head;
mod request;
mod response;
mod stream;
mod usage;

pub(crate) use answer_layout::ANSWER_LAYOUT;
pub(crate) use error::write_failure_event;
pub use error::{read_failure, write_failure};
pub(crate) use head::{cut_stream_options, read_head};
pub use request::{read_request, write_request};
pub use response::{read_response, write_response};
pub use stream::{Reader, Writer};
pub(crate) use stream::{write_events, write_usage_chunk};
