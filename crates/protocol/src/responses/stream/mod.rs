//! Streams of Responses events, from and into the common form.

pub(crate) mod gaps;
mod item;
mod items;
mod message;
mod reader;
mod sender;
mod writer;

pub use reader::Reader;
pub use writer::Writer;
