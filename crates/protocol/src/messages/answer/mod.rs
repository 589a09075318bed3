//! Answers, whole and streamed, into the common form and out of it.

mod block;
mod reader;
mod stop;
mod whole;
mod writer;

pub use reader::Reader;
pub use whole::{read_response, write_response};
pub use writer::Writer;
