//! Applies stop sequences and token limits, which cut an output.

use super::citation::Citation;
use super::output::{Call, ChunkedText, Finish, Output};
use crate::tokens::{count_tokens, cut};

/// The number of tokens of a call in addition to its name and arguments.
const CALL_TOKENS: u64 = 3;

#[derive(Debug)]
pub(super) struct UnlimitedOutput {
    pub(super) reasoning: ChunkedText,
    pub(super) text: ChunkedText,
    pub(super) refused: bool,
    pub(super) calls: Vec<Call>,
    /// The stop sequence at which the text was cut.
    pub(super) stop: Option<String>,
    pub(super) citation: Option<Citation>,
}

impl UnlimitedOutput {
    /// If the text contains a stop sequence, cuts it before the first one and drops the calls.
    pub(super) fn stop_at(&mut self, stops: &[String]) {
        let text = self.text.as_str();
        let first = stops
            .iter()
            .filter(|stop| !stop.is_empty())
            .filter_map(|stop| Some((text.find(stop.as_str())?, stop)))
            .min_by_key(|(at, _)| *at);
        if let Some((end, stop)) = first {
            self.text = self.text.shortened(text.get(..end).unwrap_or_default());
            self.stop = Some(stop.clone());
            self.calls.clear();
        }
    }

    /// Cuts the text in half, as the vendor's filter does, and drops the calls.
    pub(super) fn filter_half(&mut self) {
        let text = self.text.as_str();
        let (kept, _) = cut(text, count_tokens(text) / 2);
        self.text = self.text.shortened(kept);
        self.calls.clear();
    }

    /// Applies the token limit in the order of the output: reasoning, text, calls.
    pub(super) fn finish(self, tokens_max: Option<u64>, filtered: bool) -> Output {
        let mut budget = TokenBudget {
            left: tokens_max.unwrap_or(u64::MAX),
            spent: 0,
            exceeded: false,
        };
        let reasoning = budget.take_text(&self.reasoning);
        let reasoning_tokens = budget.spent;
        let text = budget.take_text(&self.text);
        let mut calls = Vec::new();
        for call in self.calls {
            if budget.exceeded || !budget.take(CALL_TOKENS + count_tokens(&call.name)) {
                break;
            }
            let arguments = budget.take_text(&call.arguments);
            calls.push(Call { arguments, ..call });
        }
        let finish = if budget.exceeded {
            Finish::Length
        } else if filtered {
            Finish::Filter
        } else if calls.is_empty() {
            Finish::Stop
        } else {
            Finish::Calls
        };
        Output {
            reasoning,
            refused: self.refused,
            calls,
            stop: self.stop.filter(|_| finish == Finish::Stop),
            citation: self.citation.filter(|_| !text.is_empty()),
            text,
            finish,
            reasoning_tokens,
            tokens: budget.spent,
        }
    }
}

struct TokenBudget {
    left: u64,
    spent: u64,
    /// Whether something was cut or left out.
    exceeded: bool,
}

impl TokenBudget {
    fn take_text(&mut self, text: &ChunkedText) -> ChunkedText {
        let (kept, tokens) = cut(text.as_str(), self.left);
        self.left -= tokens;
        self.spent += tokens;
        if kept.len() == text.as_str().len() {
            return text.clone();
        }
        self.exceeded = true;
        text.shortened(kept)
    }

    fn take(&mut self, tokens: u64) -> bool {
        if let Some(left) = self.left.checked_sub(tokens) {
            self.left = left;
            self.spent += tokens;
            return true;
        }
        self.exceeded = true;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uncut(reasoning: &str, text: &str, arguments: &[&str]) -> UnlimitedOutput {
        UnlimitedOutput {
            reasoning: ChunkedText::new(reasoning),
            text: ChunkedText::new(text),
            refused: false,
            calls: arguments
                .iter()
                .map(|arguments| Call {
                    name: "f".to_owned(),
                    arguments: ChunkedText::new(*arguments),
                    custom: false,
                })
                .collect(),
            stop: None,
            citation: None,
        }
    }

    #[test]
    fn the_limit_covers_reasoning_text_and_calls() {
        for (max, reasoning, text, calls, finish, tokens) in [
            (None, "a b", "c d", 1, Finish::Calls, 9),
            (Some(9), "a b", "c d", 1, Finish::Calls, 9),
            (Some(8), "a b", "c d", 1, Finish::Length, 8),
            (Some(7), "a b", "c d", 0, Finish::Length, 4),
            (Some(3), "a b", "c", 0, Finish::Length, 3),
            (Some(2), "a b", "", 0, Finish::Length, 2),
            (Some(1), "a", "", 0, Finish::Length, 1),
        ] {
            let output = uncut("a b", "c d", &["1"]).finish(max, false);
            assert_eq!(output.reasoning.as_str(), reasoning, "{max:?}");
            assert_eq!(output.text.as_str(), text, "{max:?}");
            assert_eq!(output.calls.len(), calls, "{max:?}");
            assert_eq!((output.finish, output.tokens), (finish, tokens), "{max:?}");
        }
    }

    #[test]
    fn a_text_that_fits_exactly_is_not_cut() {
        let output = uncut("", "one two three", &[]).finish(Some(3), false);
        assert_eq!(output.finish, Finish::Stop);
    }

    #[test]
    fn the_first_stop_sequence_ends_the_text() {
        let mut uncut = uncut("", "one two three two", &["1"]);
        uncut.stop_at(&["three".to_owned(), " two".to_owned(), String::new()]);
        assert_eq!(uncut.text.as_str(), "one");
        assert!(uncut.calls.is_empty());
        assert_eq!(uncut.finish(None, false).stop.as_deref(), Some(" two"));
    }
}
