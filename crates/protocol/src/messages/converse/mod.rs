//! Converse, a notation in which a cloud offers the models of many vendors. It expresses the same things as Messages,
//! with other names.
//!
//! No client uses it. A request is written as Messages first and then in this notation (`request.rs`); an answer
//! (`answer.rs`) and the events of a stream (`stream.rs`) become those of Messages. So everything that the gateway can
//! do with a Messages upstream also works with these models.

mod answer;
mod content;
mod request;
mod stream;
mod tools;
mod usage;

pub use answer::read_answer;
pub use request::{rewrite_request, write_request};
pub(crate) use stream::Events;
