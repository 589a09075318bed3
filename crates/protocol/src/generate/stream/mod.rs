//! Streams of Generate Content chunks, from and into the common form.

mod reader;
mod writer;

pub use reader::Reader;
pub use writer::Writer;
