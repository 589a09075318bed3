//! Serves `POST /v1/embeddings`.
//!
//! Models whose names begin with `sim-embed-float` or `sim-embed-base64` always use the encoding in their name, even if
//! the caller asks for another one, as some compatible servers do.

mod answer;
mod call;
mod request;

pub(crate) use call::Embeddings;
