//! `SQLite` behind the verbs: the embedded default, one node.
//!
//! `ledger` is one connection's transactions, with `calls`, `changes` and `tasks` in them;
//! `apply` takes commands to them, and `writer` runs it on its thread; while it sleeps in an open
//! batch, callers decide on its books themselves (`open_books`). `keeper` folds the log and watches the
//! disk, `reads` serves look-ups, `journal` is a file and a thread of its own. `backend` puts them
//! together. In the tests of schedules (`schedules`) a checker decides which of their threads runs.

mod apply;
mod backend;
mod callbacks;
mod calls;
mod careful;
mod changes;
mod connect;
mod disk;
mod entries;
#[cfg(test)]
#[cfg(not(feature = "schedules"))]
mod faults;
mod files;
mod heads;
mod ids;
mod insert;
mod journal;
mod keeper;
mod ledger;
mod load;
mod lock;
mod lookups;
mod open;
mod open_books;
mod pen;
mod reads;
mod recovery;
mod rows;
#[cfg(test)]
#[cfg(feature = "schedules")]
mod schedules;
mod schema;
mod statements;
mod task_looks;
mod tasks;
mod trouble;
mod turn;
mod verify;
mod writer;

pub(crate) use backend::Sqlite;
