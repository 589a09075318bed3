//! Tests the simulator over real sockets, with a client that shares no code with it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod call_log;
mod chat;
mod client;
mod clouds;
mod faults;
mod generate;
mod habits;
mod hostile;
mod interactions;
mod messages;
mod properties;
mod responses;
mod videos;
