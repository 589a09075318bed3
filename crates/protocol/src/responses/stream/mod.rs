//! Streams of Responses events, from and into the common form.

mod from_answer;
pub(crate) mod gaps;
mod item;
mod items;
mod message;
mod reader;
mod sender;
mod writer;

pub(crate) use from_answer::write_events;
pub use reader::Reader;
pub use writer::Writer;
