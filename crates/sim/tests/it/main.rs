//! Tests of the simulator over real sockets, by a client that shares no code with it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod calls;
mod chat;
mod client;
mod faults;
mod generate;
mod google_laws;
mod habits;
mod hostile;
mod interactions;
mod laws;
mod messages;
mod messages_refusals;
mod named_faults;
mod named_laws;
mod responses;
mod stream;
mod videos;
