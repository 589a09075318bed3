//! Sockets: the accept loop, the connections, and the life of one exchange.

mod body;
mod endpoint;
mod exchange;
mod sim;
mod state;
mod wire;

pub use sim::{Sim, serve};

pub(crate) use state::State;
