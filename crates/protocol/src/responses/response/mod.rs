//! Whole answers, from and into the common form.

pub(super) mod hosted_tools;
mod object;
pub(super) mod output;
mod read;
mod wire;
mod write;

pub(super) use object::{ContentKinds, Ending, Object};
pub(super) use output::ItemId;
pub use read::read_response;
pub(super) use wire::{Answer, Citation, Item, Part, skip};
pub use write::write_response;
