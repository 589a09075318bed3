//! `POST /v1/embeddings`.
//!
//! Models whose names begin with `sim-embed-float` and `sim-embed-base64` know one encoding only and
//! answer in it whatever was asked for, as some compatible servers do.

mod answer;
mod call;
mod request;

pub(crate) use call::Embeddings;
