//! Log probabilities: believable numbers for the tokens of a text.

use crate::seed::Seed;
use crate::tokens::first_len;
use serde::{Serialize, Serializer};

/// Stands in for alternatives of a token.
const OTHERS: [&str; 8] = [" the", " a", " and", ".", ",", " it", " of", " so"];

#[derive(Debug, Serialize)]
pub(super) struct Logprobs {
    content: Option<Vec<Place>>,
    refusal: Option<Vec<Place>>,
}

/// One token of the text, with what could have stood there.
#[derive(Debug, Serialize)]
struct Place {
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

/// Of a text, with so many alternatives for each token.
pub(super) fn of(text: &str, alternatives: usize, refused: bool) -> Logprobs {
    let mut tokens = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (token, after) = rest.split_at(first_len(rest).max(1));
        tokens.push(place_of(token, alternatives));
        rest = after;
    }
    if refused {
        Logprobs {
            content: None,
            refusal: Some(tokens),
        }
    } else {
        Logprobs {
            content: Some(tokens),
            refusal: None,
        }
    }
}

fn place_of(token: &str, alternatives: usize) -> Place {
    let mut seed = Seed::of(&[token.as_bytes()]);
    let own = u32::try_from(seed.below(2000)).unwrap_or_default();
    // The token that was chosen stands first among its alternatives.
    let others = OTHERS.into_iter().filter(|other| *other != token).cycle();
    let top_logprobs = std::iter::once(token)
        .chain(others)
        .zip(0_u32..)
        .take(alternatives)
        .map(|(token, rank)| Alternative {
            token: token.to_owned(),
            logprob: Logprob(own + rank * 7000),
            bytes: token.as_bytes().to_vec(),
        })
        .collect();
    Place {
        token: token.to_owned(),
        logprob: Logprob(own),
        bytes: token.as_bytes().to_vec(),
        top_logprobs,
    }
}

/// A negative number of ten-thousandths.
#[derive(Debug, Clone, Copy)]
struct Logprob(u32);

impl Serialize for Logprob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = format!("-{}.{:04}", self.0 / 10_000, self.0 % 10_000);
        let number: f64 = text.parse().map_err(serde::ser::Error::custom)?;
        serializer.serialize_f64(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_is_told_with_its_alternatives() {
        let shown = serde_json::to_value(of("Hi there", 2, false)).unwrap();
        let tokens = shown["content"].as_array().unwrap();
        assert_eq!(tokens.len(), 2);
        assert_eq!(tokens[0]["token"], "Hi");
        assert_eq!(tokens[0]["bytes"], serde_json::json!([72, 105]));
        assert_eq!(tokens[0]["top_logprobs"].as_array().unwrap().len(), 2);
        assert_eq!(tokens[0]["top_logprobs"][0]["token"], "Hi");
        assert!(tokens[0]["logprob"].as_f64().unwrap() <= 0.0);
        assert!(shown["refusal"].is_null());
        let refused = serde_json::to_value(of("No", 0, true)).unwrap();
        assert!(refused["content"].is_null());
    }
}
