//! Whole answers and the common form.

mod answer;
mod object;
pub(super) mod output;
mod read;
mod write;

pub(super) use answer::{Answer, Citation, Item, Part, skip};
pub(super) use object::{Ending, Object, Said};
pub(super) use output::ItemId;
pub use read::read_response;
pub use write::write_response;
