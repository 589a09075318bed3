//! Streams of message events, from and into the common form.

mod reader;
mod writer;

pub use reader::Reader;
pub use writer::Writer;
