//! What all commands share: tables, JSON, times as people write them, and errors.

mod error;
mod output;
mod patience;
mod table;
pub(super) mod when;

pub(super) use error::Stop;
#[cfg(feature = "sim")]
pub(super) use error::with_sources;
pub(super) use output::Output;
pub(super) use patience::Patience;
pub(super) use table::{Side, Table};
pub(super) use when::When;
