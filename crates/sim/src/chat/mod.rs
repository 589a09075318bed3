//! Serves `POST /v1/chat/completions`.

mod annotation;
mod answer;
mod audio;
mod call;
mod choice_stream;
mod delta;
mod logprobs;
mod messages;
mod parameters;
mod request;
mod stream;
mod tools;
mod usage;

pub(crate) use call::Chat;
