//! Streams of message events, into the common form and out of it.

mod reader;
mod writer;

pub use reader::Reader;
pub use writer::Writer;
