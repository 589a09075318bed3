//! Log probabilities of tokens.

use serde_json::Number;

/// One token of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub chosen: Likelihood,
    /// The most likely tokens at this position, as many as requested.
    pub top: Vec<Likelihood>,
}

/// A token and its log probability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Likelihood {
    pub token: String,
    /// The bytes of the token, which may be a part of a character. Some dialects do not report them.
    pub bytes: Option<Vec<u8>>,
    /// The number that the upstream reported.
    pub logprob: Number,
}
