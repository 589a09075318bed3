//! Stores and reads tasks and their callbacks.

pub(super) mod callbacks;
pub(super) mod lookups;
pub(super) mod transactions;
