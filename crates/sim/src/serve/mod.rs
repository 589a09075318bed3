//! The server: accept loop, connections and exchanges.

mod body;
mod endpoint;
mod exchange;
mod sim;
mod state;
mod wire;

pub use sim::{Sim, serve};

pub(crate) use state::State;
