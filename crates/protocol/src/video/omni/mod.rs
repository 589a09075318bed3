//! Omni interactions: videos through the Interactions endpoint.
//!
//! The upstream answers when the video is ready, minutes later. The client gets a task at once and
//! polls it.

mod format;
mod input;
mod protocol;
mod report;
mod request;
mod route_hints;
mod snapshot;
#[cfg(test)]
mod tests;
mod usage;

pub use protocol::Omni;
pub use request::{Request, read_request};
pub use route_hints::{RouteHints, read_route_hints};
