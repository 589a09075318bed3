//! Embeddings: `POST /v1/embeddings`, and `:embedContent` of Generate Content.
//!
//! A [`Request`] is read in one of these two forms. It is written in either of them, or in one of the two
//! forms of a cloud vendor. The client receives the answer in the form and encoding that it asked for. If
//! client and upstream use the same form, the gateway changes only the model's name in the request, and edits
//! the answer in place.

mod answer;
mod content;
mod contents_answer;
mod hosted_content;
mod instances;
mod list;
mod list_answer;
mod request;
mod shown_usage;
mod translate;
mod vector;

pub use request::{EncodedRequest, Encoding, Form, Request};
pub use translate::{read_named_request, read_request};
