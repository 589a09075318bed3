//! Streams of Responses events, from and into the common form.

mod from_answer;
mod item;
mod items;
mod message;
pub(crate) mod missing_members;
mod reader;
mod sender;
mod writer;

pub(crate) use from_answer::write_events;
pub use reader::Reader;
pub use writer::Writer;
