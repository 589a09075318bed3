//! A running gateway: starts its parts in order, reloads its configuration, and stops them in order.

mod catalog;
mod open_store;
mod reload;
mod running;
mod start_error;

pub(crate) use running::{Gateway, local_address};
pub(crate) use start_error::StartError;
