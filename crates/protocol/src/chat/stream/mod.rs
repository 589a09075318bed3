//! Streams of completion chunks, from and into the common form.

pub(super) mod assembler;
mod reader;
mod writer;

pub use reader::Reader;
pub use writer::Writer;
