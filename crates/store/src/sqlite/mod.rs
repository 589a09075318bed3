//! `SQLite`: the embedded default, for one node.
//!
//! The `writer` decides and writes on its own thread. While it sleeps in an open batch, callers decide on its books
//! themselves (`writer/shared_ledger`). Its transactions include `tasks`. `reads` serves lookups on other threads, and
//! `journal` has a file and a thread of its own. `connection` opens the files, `schema` migrates them, and `recovery`
//! closes the holds that earlier starts left open. `backend` connects the parts. `transfer` copies a whole database to
//! or from another. In the schedule tests (`schedules`), a checker decides which thread runs.

mod alerts;
mod backend;
mod connection;
#[cfg(test)]
#[cfg(not(feature = "schedules"))]
mod faults;
mod ids;
mod inspect;
mod journal;
mod operations;
mod reads;
mod recovery;
mod rows;
#[cfg(test)]
#[cfg(feature = "schedules")]
mod schedules;
mod schema;
mod statement_reads;
mod tasks;
mod transfer;
mod writer;

pub(crate) use backend::Sqlite;
pub(crate) use inspect::inspect;
pub(crate) use transfer::{SqliteSide, copy_pages};
