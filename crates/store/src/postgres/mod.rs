//! `PostgreSQL`: any number of nodes on one database.
//!
//! A process has two threads. The first runs the lanes (`writer`), which decide and write in transactions that
//! lock wallets first. The second runs everything that must not delay them: lookups (`reads`), the journal, the
//! node's lease and the sweeper, which closes the holds of dead nodes (`node`). `backend` connects the parts.
//! `transfer` copies a whole database to or from another.

mod alerts;
mod backend;
mod background;
mod connection;
mod ids;
mod inspect;
mod journal;
mod node;
mod operations;
mod reads;
mod rows;
mod schema;
mod statement_reads;
mod tasks;
mod transfer;
mod writer;

pub(crate) use backend::Postgres;
pub(crate) use connection::connect::{Role, Target};
pub(crate) use inspect::inspect;
pub(crate) use transfer::PostgresSide;
