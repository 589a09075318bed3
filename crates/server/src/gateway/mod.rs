//! Starts the parts of a gateway in order, reloads its configuration, and stops the parts in order.

mod catalog;
mod catalog_change;
mod catalog_keeper;
mod open_store;
mod public_limits;
mod reload;
mod running;
mod start_error;

pub(crate) use catalog_change::switch_action;
pub(crate) use catalog_keeper::{CatalogKeeper, InForce, ReplaceError};
pub(crate) use running::{Gateway, local_address, scheme};
pub(crate) use start_error::StartError;
