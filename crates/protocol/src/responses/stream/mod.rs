//! Responses streams and the common form.

mod item;
mod items;
mod message;
mod reader;
mod sender;
mod writer;

pub use reader::Reader;
pub use writer::Writer;
