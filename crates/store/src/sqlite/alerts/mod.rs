//! Alerts, rules and deliveries.

pub(super) mod lookups;
mod transactions;
