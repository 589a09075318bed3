//! Defines the model's output, and how a stream splits its text.

use super::citation::Citation;
use crate::tokens::TokenIterator;
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Output {
    pub(crate) reasoning: ChunkedText,
    /// The answer, or the text of the refusal if `refused` is set.
    pub(crate) text: ChunkedText,
    pub(crate) refused: bool,
    pub(crate) calls: Vec<Call>,
    pub(crate) finish: Finish,
    /// The stop sequence that ended the text.
    pub(crate) stop: Option<String>,
    /// The source of the text. `None` if there is no text.
    pub(crate) citation: Option<Citation>,
    pub(crate) reasoning_tokens: u64,
    /// The total number of tokens of reasoning, text and calls.
    pub(crate) tokens: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// JSON for a function, free text for a custom tool.
    pub(crate) arguments: ChunkedText,
    pub(crate) custom: bool,
}

impl Output {
    /// Splits the reasoning into at most `parts` parts, none of them empty.
    pub(crate) fn reasoning_in_parts(&self, parts: usize) -> Vec<ChunkedText> {
        let sentences: Vec<_> = self.reasoning.as_str().split_inclusive(". ").collect();
        let length = sentences.len().div_ceil(parts.max(1)).max(1);
        sentences
            .chunks(length)
            .map(|part| ChunkedText::new(part.concat()))
            .collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    Stop,
    Length,
    Calls,
    Filter,
}

/// A text, and the way in which a stream splits it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ChunkedText {
    text: Arc<str>,
    chunking: Chunking,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Chunking {
    /// One token at a time.
    #[default]
    Tokens,
    /// This many pieces of nearly equal length.
    Even(usize),
    /// One token at a time, except for this range, which is one piece.
    Huge { from: usize, to: usize },
}

impl ChunkedText {
    pub(crate) fn new(text: impl Into<Arc<str>>) -> Self {
        Self {
            text: text.into(),
            chunking: Chunking::Tokens,
        }
    }

    pub(crate) fn evenly(text: impl Into<Arc<str>>, pieces: usize) -> Self {
        Self {
            text: text.into(),
            chunking: Chunking::Even(pieces.max(1)),
        }
    }

    pub(crate) fn with_huge(text: impl Into<Arc<str>>, from: usize, to: usize) -> Self {
        Self {
            text: text.into(),
            chunking: Chunking::Huge { from, to },
        }
    }

    /// A shorter text that is split in the same way.
    pub(crate) fn shortened(&self, text: &str) -> Self {
        Self {
            text: text.into(),
            chunking: self.chunking,
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(crate) fn pieces(&self) -> Pieces {
        Pieces {
            tokens: TokenIterator::new(Arc::clone(&self.text)),
            len: self.text.len(),
            chunking: self.chunking,
            index: 0,
        }
    }
}

/// An iterator over the pieces of a text. It owns the text, so that a stream can own the iterator.
#[derive(Debug)]
pub(crate) struct Pieces {
    tokens: TokenIterator,
    len: usize,
    chunking: Chunking,
    index: usize,
}

impl Pieces {
    pub(crate) fn next(&mut self) -> Option<&str> {
        match self.chunking {
            Chunking::Tokens => self.tokens.token(),
            Chunking::Even(pieces) => {
                self.index += 1;
                let end = if self.index >= pieces {
                    self.len
                } else {
                    // This cannot overflow: a text has at most tens of megabytes, and at most a million pieces.
                    self.len / pieces * self.index + self.len % pieces * self.index / pieces
                };
                let len = end.saturating_sub(self.tokens.at()).max(1);
                self.tokens.bytes(len)
            }
            Chunking::Huge { from, to } => match self.tokens.at() {
                at if at < from => self.tokens.token_before(from),
                at if at == from => self.tokens.bytes(to.saturating_sub(from)),
                _ => self.tokens.token(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &ChunkedText) -> Vec<String> {
        let mut pieces = text.pieces();
        std::iter::from_fn(|| pieces.next().map(str::to_owned)).collect()
    }

    #[test]
    fn a_text_is_cut_as_it_says() {
        for (text, expected) in [
            (ChunkedText::new("one two"), vec!["one", " two"]),
            (ChunkedText::new(""), vec![]),
            (ChunkedText::evenly("abcdefgh", 3), vec!["ab", "cde", "fgh"]),
            (ChunkedText::evenly("ab", 5), vec!["a", "b"]),
            (
                ChunkedText::with_huge("a xxxxxxxxx b", 2, 11),
                vec!["a", " ", "xxxxxxxxx", " b"],
            ),
        ] {
            assert_eq!(pieces(&text), expected);
        }
    }

    #[test]
    fn reasoning_comes_in_parts_that_are_the_whole_together() {
        let whole = "I see. I think. I weigh. I know.";
        let output = |reasoning: &str| Output {
            reasoning: ChunkedText::new(reasoning),
            text: ChunkedText::default(),
            refused: false,
            calls: Vec::new(),
            finish: Finish::Stop,
            stop: None,
            citation: None,
            reasoning_tokens: 0,
            tokens: 0,
        };
        for (parts, expected) in [(0, 1), (1, 1), (2, 2), (3, 2), (4, 4), (9, 4)] {
            let found = output(whole).reasoning_in_parts(parts);
            assert_eq!(found.len(), expected, "{parts}");
            assert_eq!(
                found.iter().map(ChunkedText::as_str).collect::<String>(),
                whole
            );
        }
        assert_eq!(output("").reasoning_in_parts(2), []);
    }

    #[test]
    fn an_even_cut_has_exactly_so_many_pieces() {
        for (len, count) in [(1000, 100), (1001, 100), (99, 99), (1_000_000, 7)] {
            let text = ChunkedText::evenly("x".repeat(len), count);
            assert_eq!(pieces(&text).len(), count, "{len} in {count}");
        }
    }
}
