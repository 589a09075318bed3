//! Writes events: numbers them, and hides the lengths of deltas.

use super::event::{ContentPosition, Data};
use crate::model::ChunkedText;
use crate::openai::{self, Refusal, TokenLogprob};
use crate::reply::{Event, EventKind};
use crate::seed::Seed;

const OBFUSCATION_MAX: usize = 16;
const SERVER_ERROR: &str = "server_error";

pub(super) struct Writer {
    number: u64,
    obfuscation: Option<Seed>,
}

impl Writer {
    /// Creates a writer. With a seed, deltas get a padding string of random length.
    pub(super) fn new(obfuscation: Option<Seed>) -> Self {
        Self {
            number: 0,
            obfuscation,
        }
    }

    pub(super) fn write(&mut self, kind: EventKind, name: &str, data: &Data<'_>) -> Event {
        let number = self.number;
        self.number += 1;
        data.write(kind, name, number)
    }

    pub(super) fn frame(&mut self, name: &str, data: &Data<'_>) -> Event {
        self.write(EventKind::Frame, name, data)
    }

    pub(super) fn delta(
        &mut self,
        name: &str,
        spot: ContentPosition<'_>,
        delta: &str,
        logprobs: Option<Vec<TokenLogprob>>,
    ) -> Event {
        let obfuscation = self.obfuscation.as_mut().map(|seed| {
            let len = 1 + seed.below(OBFUSCATION_MAX);
            seed.letters(len)
        });
        let data = Data::Delta {
            spot,
            delta,
            logprobs,
            obfuscation,
        };
        self.write(EventKind::Content, name, &data)
    }

    /// Writes the event that ends the text of a message.
    pub(super) fn text_done(
        &mut self,
        spot: ContentPosition<'_>,
        text: &ChunkedText,
        refused: bool,
        alternatives: Option<usize>,
    ) -> Event {
        let text = text.as_str();
        if refused {
            let done = Data::Refusal {
                spot,
                refusal: text,
            };
            return self.frame("response.refusal.done", &done);
        }
        let places = alternatives.map_or_else(Vec::new, |count| openai::logprobs(text, count));
        let done = Data::Text {
            spot,
            text,
            logprobs: Some(places),
        };
        self.frame("response.output_text.done", &done)
    }

    pub(super) fn error(&mut self, refusal: &Refusal) -> Event {
        let error = Data::Error {
            code: Some(refusal.code.unwrap_or(SERVER_ERROR)),
            message: &refusal.message,
            param: refusal.param.as_deref(),
        };
        self.frame("error", &error)
    }
}
