//! The Responses dialect, `POST /v1/responses`.

mod error;
mod head;
mod places;
mod usage;

pub use error::{read_failure, write_failure};
pub(crate) use error::{write_failure_event, write_first_failure};
pub(crate) use head::read_head;
pub(crate) use places::PLACES;
pub use usage::read_usage;
