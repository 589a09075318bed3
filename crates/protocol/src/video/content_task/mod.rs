//! The content-task protocol: videos made from content items. Each is a task that can be polled, listed and
//! deleted.

mod check;
mod content;
mod protocol;
mod report;
mod request;
mod resolution;
mod snapshot;
#[cfg(test)]
mod tests;
mod text_options;
mod tokens;

pub use protocol::ContentTask;
pub use request::{Request, read_request};
pub use snapshot::write_list;
