//! Lists every table of a store with its columns, for both databases.
//!
//! A migration that adds columns must add them here, and a new table also to `list`. A test for each database compares
//! this list with its schema.

mod journal;
mod ledger;
mod list;
mod operators;
mod table;
mod tasks;

#[cfg(test)]
pub(crate) use list::NOT_COPIED;
pub(crate) use list::TABLES;
pub(crate) use table::{Column, File, InPostgres, InSqlite, Kind, Table};
