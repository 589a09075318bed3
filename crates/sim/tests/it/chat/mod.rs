//! Tests of Chat Completions.

mod answer;
mod stream;
