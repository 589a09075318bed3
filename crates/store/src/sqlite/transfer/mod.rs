//! Reads or writes a whole database as one side of a transfer.

pub(super) mod marker;
mod pages;
mod rows;
mod side;

pub(crate) use pages::copy_pages;
pub(crate) use side::SqliteSide;
