//! `SQLite` behind the verbs: the embedded default, one node.
//!
//! `ledger` is one connection's transactions, with `calls`, `changes` and `tasks` in them;
//! `apply` takes commands to them, and `writer` runs it on its thread; while it sleeps in an open
//! batch, callers decide on its books themselves (`shared_ledger`). `checkpointer` folds the log and watches the
//! disk, `reads` serves look-ups, `journal` is a file and a thread of its own. `backend` puts them
//! together. In the tests of schedules (`schedules`) a checker decides which of their threads runs.

mod backend;
mod connection;
#[cfg(test)]
#[cfg(not(feature = "schedules"))]
mod faults;
mod ids;
mod journal;
mod reads;
mod recovery;
mod rows;
#[cfg(test)]
#[cfg(feature = "schedules")]
mod schedules;
mod schema;
mod tasks;
mod writer;

pub(crate) use backend::Sqlite;
