//! Creates plausible log probabilities for the tokens of a text.

use crate::seed::Seed;
use crate::tokens::first_len;
use serde::{Serialize, Serializer};

/// The alternatives that are reported for every token.
const OTHERS: [&str; 8] = [" the", " a", " and", ".", ",", " it", " of", " so"];
/// The difference between the log probabilities of an alternative and the next less likely one, in ten-thousandths.
const STEP: u32 = 7000;

/// A log probability without its minus sign, in ten-thousandths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Logprob(u32);

impl Serialize for Logprob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = format!("-{}.{:04}", self.0 / 10_000, self.0 % 10_000);
        let number: f64 = text.parse().map_err(serde::ser::Error::custom)?;
        serializer.serialize_f64(number)
    }
}

impl Logprob {
    pub(crate) fn sum(all: impl Iterator<Item = Self>) -> Self {
        Self(all.fold(0, |sum, one| sum.saturating_add(one.0)))
    }

    pub(crate) fn over(self, count: usize) -> Self {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        Self(self.0.checked_div(count).unwrap_or_default())
    }
}

pub(crate) fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (token, after) = rest.split_at_checked(first_len(rest).max(1))?;
        rest = after;
        Some(token)
    })
}

/// The log probability of a token, and the most likely tokens at its position. The first of these is the token itself.
pub(crate) fn ranked(token: &str, alternatives: usize) -> (Logprob, Vec<(&str, Logprob)>) {
    let mut seed = Seed::of(&[token.as_bytes()]);
    let own = u32::try_from(seed.below(2000)).unwrap_or_default();
    let others = OTHERS.into_iter().filter(move |other| *other != token);
    let ranked = std::iter::once(token)
        .chain(others.cycle())
        .zip(0_u32..)
        .take(alternatives)
        .map(|(token, rank)| (token, Logprob(own + rank * STEP)))
        .collect();
    (Logprob(own), ranked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_itself_is_the_likeliest() {
        let (own, ranked) = ranked(" the", 3);
        assert_eq!(ranked.first(), Some(&(" the", own)));
        assert_eq!(ranked.len(), 3);
        assert!(ranked.iter().skip(1).all(|(token, _)| *token != " the"));
        assert_eq!(tokens("Hi there").collect::<Vec<_>>(), ["Hi", " there"]);
    }

    #[test]
    fn numbers_are_negative_and_exact() {
        let shown = |logprob: Logprob| serde_json::to_string(&logprob).unwrap();
        assert_eq!(shown(Logprob(12_345)), "-1.2345");
        let sum = Logprob::sum([Logprob(1000), Logprob(2000)].into_iter());
        assert_eq!(shown(sum), "-0.3");
        assert_eq!(shown(sum.over(2)), "-0.15");
        assert_eq!(shown(sum.over(0)), "-0.0");
    }
}
