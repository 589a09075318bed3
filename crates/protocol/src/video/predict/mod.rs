//! Long-running predict: an operation that clients poll by its name.

mod image;
mod protocol;
mod report;
mod request;
mod snapshot;
#[cfg(test)]
mod tests;

pub use protocol::Predict;
pub use request::{Request, read_request};
