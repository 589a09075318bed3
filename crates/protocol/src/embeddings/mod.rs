//! Vectors of texts: `POST /v1/embeddings`, and `:embedContent` of Generate Content.
//!
//! A [`Request`] is read in either form and written in either; the answer comes back in the form
//! and encoding that was asked for. Where caller and upstream use the same form, no byte of the
//! request changes but the model's name, and none of the answer but the same.

mod answer;
mod content;
mod listed;
mod request;
mod vector;

pub use request::{Encoding, Form, Request, Worded, read_named_request, read_request};
