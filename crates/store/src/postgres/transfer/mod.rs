//! A whole database as one side of a transfer to or from another.

pub(super) mod marker;
mod rows;
mod side;
mod values;

pub(crate) use side::PostgresSide;
