//! Video-A: generations, edits and extensions, each a task that is polled.

mod check;
mod report;
mod request;
mod snapshot;
#[cfg(test)]
mod tests;
mod wire;

pub use report::read_poll;
pub use request::{Operation, Request, read_request};
pub use snapshot::{write_accepted, write_expired, write_failed, write_pending};
pub use wire::read_accepted;
