//! Writes log probabilities in the wire format of this family.

use crate::logprob::{self, Logprob};
use serde::Serialize;

/// One token and its alternatives.
#[derive(Debug, Serialize)]
pub(crate) struct TokenLogprob {
    token: String,
    logprob: Logprob,
    bytes: Vec<u8>,
    top_logprobs: Vec<Alternative>,
}

#[derive(Debug, Serialize)]
struct Alternative {
    token: String,
    logprob: Logprob,
    bytes: Vec<u8>,
}

/// The log probabilities of a text, with this many alternatives for each token.
pub(crate) fn logprobs(text: &str, alternatives: usize) -> Vec<TokenLogprob> {
    logprob::tokens(text)
        .map(|token| place_of(token, alternatives))
        .collect()
}

fn place_of(token: &str, alternatives: usize) -> TokenLogprob {
    let (own, ranked) = logprob::ranked(token, alternatives);
    let top_logprobs = ranked
        .into_iter()
        .map(|(token, logprob)| Alternative {
            token: token.to_owned(),
            logprob,
            bytes: token.as_bytes().to_vec(),
        })
        .collect();
    TokenLogprob {
        token: token.to_owned(),
        logprob: own,
        bytes: token.as_bytes().to_vec(),
        top_logprobs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_is_told_with_its_alternatives() {
        let shown = serde_json::to_value(logprobs("Hi there", 2)).unwrap();
        let tokens = shown.as_array().unwrap();
        assert_eq!(tokens.len(), 2);
        assert_eq!(tokens[0]["token"], "Hi");
        assert_eq!(tokens[0]["bytes"], serde_json::json!([72, 105]));
        assert_eq!(tokens[0]["top_logprobs"].as_array().unwrap().len(), 2);
        assert_eq!(tokens[0]["top_logprobs"][0]["token"], "Hi");
        assert!(tokens[0]["logprob"].as_f64().unwrap() <= 0.0);
    }
}
