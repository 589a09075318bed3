//! Tests of the text dialects and embeddings: answers, refusals, conversions and token counts.

mod captures;
mod chat_plain;
mod chat_refusals;
mod continuity;
mod embeddings;
mod logprobs;
mod token_counts;
