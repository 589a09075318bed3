//! `POST /v1/embeddings`.
//!
//! Models whose names begin with `sim-embed-float` and `sim-embed-base64` always use that encoding,
//! whatever the caller asked for, as some compatible servers do.

mod answer;
mod call;
mod request;

pub(crate) use call::Embeddings;
