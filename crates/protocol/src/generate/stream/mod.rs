//! Converts streams of Generate Content chunks from and to the common form.

mod from_answer;
mod part;
mod reader;
mod writer;

pub(crate) use from_answer::write_events;
pub use reader::Reader;
pub use writer::Writer;
