//! Streams of interaction events, from and into the common form.

mod assembler;
pub(crate) mod gaps;
mod reader;
mod writer;

pub use reader::Reader;
pub use writer::Writer;
