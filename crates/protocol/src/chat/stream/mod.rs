//! Converts streams of completion chunks from and to the common form.

pub(super) mod assembler;
mod from_answer;
mod missing_members;
mod reader;
mod tool_calls;
mod usage_chunk;
mod writer;

pub(crate) use from_answer::write_events;
pub(super) use missing_members::fill_in;
pub use reader::Reader;
pub(crate) use usage_chunk::write_usage_chunk;
pub use writer::Writer;
