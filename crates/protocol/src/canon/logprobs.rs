//! How likely the tokens of a text were.

use serde_json::Number;

/// One token of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub chosen: Likelihood,
    /// The likeliest tokens for its place, as many as were asked for.
    pub top: Vec<Likelihood>,
}

/// A token and how likely it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Likelihood {
    pub token: String,
    /// The token itself, where it is no whole text; some dialects do not tell.
    pub bytes: Option<Vec<u8>>,
    /// As the upstream wrote it.
    pub logprob: Number,
}
