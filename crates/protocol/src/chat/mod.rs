//! The Chat Completions dialect, `POST /v1/chat/completions`.

mod answer;
mod assembler;
mod error;
mod head;
mod places;
mod reader;
mod request;
mod response;
mod said;
mod usage;
mod writer;

pub use error::{read_failure, write_failure, write_failure_event};
pub(crate) use head::read_head;
pub(crate) use places::PLACES;
pub use reader::{Reader, read_response};
pub use request::{read_request, write_request};
pub use response::write_response;
pub use usage::read_usage;
pub use writer::Writer;
