//! Creates and updates the tables: migrations, and the values that a migration has to compute.

pub(super) mod chain_heads;
pub(super) mod migrations;
