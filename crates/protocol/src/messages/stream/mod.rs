//! Streams of message events, from and into the common form.

mod from_answer;
mod reader;
mod writer;

pub(crate) use from_answer::write_events;
pub use reader::Reader;
pub use writer::Writer;
