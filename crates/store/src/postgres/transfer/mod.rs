//! Reads or writes a whole database as one side of a transfer.

pub(super) mod marker;
mod rows;
mod side;
mod values;

pub(crate) use side::PostgresSide;
