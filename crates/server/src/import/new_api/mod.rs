//! Reads `new-api` and the older `one-api`: users, tokens, channels and ratios, from any of their databases.

mod accounts;
mod channels;
mod options;
mod presets;
mod prices;
mod read;
mod tables;

pub(crate) use read::read;

/// The name of the other system in references and reports.
pub(crate) const SYSTEM: &str = "new-api";
