//! Our HTTP/1.1 client (`docs/decisions/004`).
//!
//! The caller's task reads and writes the socket itself, instead of exchanging chunks with a connection task. If
//! possible, a request is sent in one write. All bytes of one read are returned as one piece. [`head`] and [`framing`]
//! are pure; [`Connection`] owns the socket.

mod chunked;
mod connect;
mod connection;
mod deadline_timer;
#[cfg(test)]
#[path = "../../../../fuzz/src/driver.rs"]
#[expect(unreachable_pub, reason = "it is shared with the fuzz targets")]
mod driver;
mod framing;
mod head;
#[cfg(any(test, fuzzing))]
mod hostile;
mod lookup;
mod malformed;
mod memory;
mod stream;

pub(crate) use connect::Connector;
pub(crate) use connection::Connection;
#[cfg(test)]
pub(crate) use connection::ExchangeError;
pub(crate) use framing::Framing;
pub(crate) use head::Head;
#[cfg(fuzzing)]
pub use hostile::{any_chunked, any_head};
pub(crate) use lookup::Lookups;
pub(crate) use memory::MemoryDialer;
pub use memory::MemoryListener;
pub use stream::Stream;
