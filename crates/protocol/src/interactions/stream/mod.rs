//! Converts streams of interaction events from and to the common form.

mod assembler;
mod from_answer;
pub(crate) mod missing_members;
mod reader;
mod writer;

pub(crate) use from_answer::write_events;
pub use reader::Reader;
pub use writer::Writer;
