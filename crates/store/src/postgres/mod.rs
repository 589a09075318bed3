//! `PostgreSQL`: any number of nodes on one database.
//!
//! One thread of a process runs the lanes (`writer`), which decide and write in transactions that lock wallets
//! first. Two other threads run everything that must not delay the lanes. One runs lookups (`reads`), tasks, the node's
//! lease and the sweeper, which closes the holds of dead nodes (`node`). The other runs the journal and searches.
//! `backend` connects the parts. `transfer` copies a whole database to or from another.

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
