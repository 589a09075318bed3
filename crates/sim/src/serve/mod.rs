//! The server: accept loop, connections and exchanges.

mod body;
mod endpoint;
mod exchange;
mod sim;
mod state;
mod wire;

pub use sim::Sim;

pub(crate) use state::State;
