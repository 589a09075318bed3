//! Serves `POST /v1beta/models/{model}:generateContent` and `:streamGenerateContent`, also under `/v1`.
//!
//! As with the vendor, whole answers are indented JSON, lines of events end with `\r\n`, every event carries the usage
//! so far, and a stream without `alt=sse` is one JSON array. In an answer, the first call has a `thoughtSignature` or,
//! if there is no call, the last part has one. When the client sends the result of a call, it must also send the call
//! back with its signature.

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
