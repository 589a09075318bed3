//! Compares the known models with other catalogs, and imports their prices and limits.
//!
//! `form.rs` detects the format of a catalog, `litellm.rs` and `models_dev.rs` read it into proposals, `merge.rs`
//! applies proposals to the known models, and `diff.rs` lists the changes. Numbers stay text until they are parsed as
//! prices.

mod decimal;
mod diff;
mod form;
mod litellm;
mod merge;
mod models_dev;
mod proposal;

#[cfg(test)]
mod tests;

pub(crate) use diff::{Change, changes};
pub(crate) use form::{Form, read};
pub(crate) use merge::{Merged, merge};
