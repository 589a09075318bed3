//! The Chat Completions dialect, `POST /v1/chat/completions`.

mod error;
mod request;
mod response;
mod stream;

pub use error::{read_failure, write_failure};
pub(crate) use request::read_head;
pub(crate) use response::PLACES;
pub use response::read_usage;
pub use stream::write_failure_event;
