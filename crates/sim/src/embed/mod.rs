//! Serves `POST /v1beta/models/{model}:embedContent` and `:batchEmbedContents`, also under `/v1`.

mod call;
mod request;

pub(crate) use call::{Embed, is_target};
