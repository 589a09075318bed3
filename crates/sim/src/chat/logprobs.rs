//! Writes the log probabilities of a choice, either of its content or of its refusal.

use crate::openai::{TokenLogprob, logprobs};
use serde::Serialize;

#[derive(Debug, Serialize)]
pub(super) struct Logprobs {
    content: Option<Vec<TokenLogprob>>,
    refusal: Option<Vec<TokenLogprob>>,
}

/// The log probabilities of a text, with this many alternatives for each token.
pub(super) fn of(text: &str, alternatives: usize, refused: bool) -> Logprobs {
    let tokens = Some(logprobs(text, alternatives));
    let (content, refusal) = if refused {
        (None, tokens)
    } else {
        (tokens, None)
    };
    Logprobs { content, refusal }
}
