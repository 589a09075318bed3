//! Converse, a notation in which a cloud offers the models of many vendors. It expresses the same things as Messages,
//! with other names.
//!
//! No client uses Converse. A request is first written as Messages and then as Converse (`request.rs`).
//! Answers (`answer.rs`) and the events of streams (`stream.rs`) are converted to Messages. So everything
//! that the gateway can do with a Messages upstream also works with these models.

mod answer;
mod content;
mod request;
mod stream;
mod tools;
mod usage;

pub use answer::read_answer;
pub use request::{rewrite_request, write_request};
pub(crate) use stream::Events;
