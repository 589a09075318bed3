//! A whole database as one side of a transfer to or from another.

pub(super) mod marker;
mod pages;
mod rows;
mod side;

pub(crate) use pages::copy_pages;
pub(crate) use side::SqliteSide;
