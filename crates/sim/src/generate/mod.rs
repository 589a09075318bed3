//! `POST /v1beta/models/{model}:generateContent` and `:streamGenerateContent`, also under `/v1`.
//!
//! As with the vendor, unstreamed JSON is indented, events end with `\r\n`, every event carries the
//! usage so far, and a stream without `alt=sse` is one JSON array. Calls and the last text of an
//! answer have a `thoughtSignature`. The client must send that of a call back together with its
//! result.

mod answer;
mod call;
mod candidate_stream;
mod config;
mod contents;
mod count;
mod grounding;
mod logprobs;
mod parts;
mod path;
mod plan;
mod request;
mod shape;
mod stream;
mod tools;
mod usage;

pub(crate) use call::Generate;
pub(crate) use count::{Count, is_count};
pub(crate) use path::is_target;
