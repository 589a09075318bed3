//! Stores and reads alerts, alert rules and deliveries.

pub(super) mod lookups;
mod transactions;
