//! Connections: the serving threads, timers, sockets, and HTTP/2 streams.

mod coarse_clock;
mod http2_streams;
mod monitored_socket;
mod registry;
mod self_wake;
mod serve_threads;
mod state;
mod timers;

pub(crate) use coarse_clock::CoarseClock;
pub(crate) use http2_streams::{OpenStreams, StreamExecutor, StreamTimer};
pub(crate) use monitored_socket::MonitoredSocket;
pub(crate) use registry::{Close, OpenConnections};
pub(crate) use self_wake::{ConnectionWaker, withhold_self_wake};
pub use serve_threads::ServeThreads;
pub(crate) use state::{Connection, ListenerState};
pub use timers::WaitLimits;
pub(crate) use timers::{ConnectionTimers, ServingGuard};
