//! Video-A: generations, edits and extensions. Each is a task that clients poll. Its videos stay at
//! the upstream (`docs/api/videos.md`).

mod check;
mod protocol;
mod report;
mod request;
mod snapshot;
#[cfg(test)]
mod tests;
mod wire;

pub use protocol::VideoA;
pub use request::{Operation, Request, read_request};
