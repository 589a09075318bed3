//! Chat Completions.

mod answer;
mod stream;
