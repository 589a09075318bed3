//! `PostgreSQL` behind the verbs: any number of nodes on one database.
//!
//! Two threads serve a process. On the first run the lanes (`lane`, with a `worker` for each of their two
//! connections): they decide and write in transactions (`transaction`) that lock wallets first. On
//! the second run what must never hold them up: look-ups (`reads`), the journal, the node's lease
//! (`node`) and the sweeper, which closes the holds of nodes that are gone (`sweep`). `backend` puts them
//! together.

mod backend;
mod changes;
mod connect;
mod directory;
mod doubt;
mod entries;
mod heads;
mod health;
mod ids;
mod journal;
mod lane;
mod learn;
mod link;
mod lookups;
mod node;
mod open;
mod probe;
mod reads;
mod rows;
mod schema;
mod sqlstate;
mod statements;
mod sweep;
mod tasks;
mod tls;
mod transaction;
mod trouble;
mod url;
mod verify;
mod witness;
mod worker;
mod write;

pub(crate) use backend::Postgres;
pub(crate) use connect::check;
pub(crate) use doubt::DOUBT_MAX;
