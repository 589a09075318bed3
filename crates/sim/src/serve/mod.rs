//! Sockets: the accept loop, the connections, and the life of one exchange.

mod body;
mod exchange;
mod sim;
mod surface;
mod wire;

pub use sim::{Settings, Sim, serve};

pub(crate) use sim::State;
