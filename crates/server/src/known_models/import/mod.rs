//! Known models from the catalogs of others, and what they would change.
//!
//! `form.rs` tells the forms apart, `litellm.rs` and `models_dev.rs` read theirs into proposals, `merge.rs` applies
//! proposals to the known models, and `diff.rs` says what that changes. Numbers stay text until they are prices.

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
