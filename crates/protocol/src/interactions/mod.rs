//! The Interactions dialect, text path, `POST /v1beta/interactions`.

mod content;
mod error;
mod head;
mod piece;
mod places;
mod reader;
mod request;
mod response;
mod steps;
mod teller;
pub(crate) mod time;
mod usage;
mod write;
mod writer;

pub use error::{read_failure, write_failure, write_failure_event};
pub(crate) use head::{asks_for_video, read_head};
pub(crate) use places::PLACES;
pub use reader::{Reader, read_response};
pub use request::read_request;
pub use response::write_response;
pub use usage::read_usage;
pub use write::write_request;
pub use writer::Writer;
