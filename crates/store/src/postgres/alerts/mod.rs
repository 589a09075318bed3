//! Stores and reads alerts, alert rules and deliveries. Each command is one statement and uses the database's clock.

pub(super) mod lookups;
mod updates;

pub(super) use updates::run;
