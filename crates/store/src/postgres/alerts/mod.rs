//! Alerts, rules and deliveries. Steps are one statement each; times are the database's.

pub(super) mod lookups;
mod updates;

pub(super) use updates::run;
