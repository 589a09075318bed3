//! Writes the log probabilities of a candidate.

use crate::logprob::{self, Logprob};
use crate::seed::Seed;
use serde::Serialize;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LogprobsResult {
    chosen_candidates: Vec<LikelyToken>,
    top_candidates: Vec<TopTokens>,
    log_probability_sum: Logprob,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LikelyToken {
    token: String,
    token_id: u64,
    log_probability: Logprob,
}

#[derive(Debug, Serialize)]
struct TopTokens {
    candidates: Vec<LikelyToken>,
}

/// The log probabilities of a text, with this many alternatives for each token, and their average.
pub(super) fn of(text: &str, alternatives: usize) -> (LogprobsResult, Logprob) {
    let mut result = LogprobsResult {
        chosen_candidates: Vec::new(),
        top_candidates: Vec::new(),
        log_probability_sum: Logprob::default(),
    };
    for token in logprob::tokens(text) {
        let (own, ranked) = logprob::ranked(token, alternatives);
        result.chosen_candidates.push(chosen(token, own));
        if alternatives > 0 {
            let candidates = ranked.into_iter().map(|(token, own)| chosen(token, own));
            result.top_candidates.push(TopTokens {
                candidates: candidates.collect(),
            });
        }
    }
    let all = result.chosen_candidates.iter();
    result.log_probability_sum = Logprob::sum(all.map(|chosen| chosen.log_probability));
    let average = result
        .log_probability_sum
        .over(result.chosen_candidates.len());
    (result, average)
}

fn chosen(token: &str, log_probability: Logprob) -> LikelyToken {
    LikelyToken {
        token: token.to_owned(),
        token_id: Seed::of(&[token.as_bytes()]).next() % 200_000,
        log_probability,
    }
}
