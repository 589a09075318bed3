//! Video-A: generations, edits and extensions, each a task that is polled. Its films stay where the upstream
//! has them (`docs/api/videos.md`).

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
