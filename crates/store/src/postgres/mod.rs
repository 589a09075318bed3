//! `PostgreSQL` behind the verbs: any number of nodes on one database.
//!
//! Two threads serve a process. On the first run the lanes (`lane`, with a `worker` for each of their two
//! connections): they decide and write in transactions (`transaction`) that lock wallets first. On
//! the second run what must never hold them up: look-ups (`reads`), the journal, the node's lease
//! (`node`) and the sweeper, which closes the holds of nodes that are gone (`sweep`). `backend` puts them
//! together.

mod backend;
mod connection;
mod ids;
mod journal;
mod node;
mod reads;
mod rows;
mod schema;
mod tasks;
mod writer;

pub(crate) use backend::Postgres;
pub(crate) use connection::connect::check;
pub(crate) use writer::lost_commit::LOST_COMMIT_MAX;
