//! The input and output of a watch.

use std::ops::Range;

use super::text_tokens::NonAudioTokens;
use crate::failure::Failure;

/// A message of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// Usually JSON.
    Text(&'a str),
    /// Audio.
    Binary(&'a [u8]),
}

/// The decision about a frame of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Relay the frame unchanged.
    Relay,
    /// Relay this text in its place, in a message of the same kind.
    Replace(String),
    /// Refuse it and tell the client why. The session continues.
    Refuse {
        /// The reason.
        failure: Box<Failure>,
        /// The client's id of the event.
        event_id: Option<String>,
    },
}

/// A replacement for a frame of the upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameReplacement {
    /// The text for the client.
    pub text: String,
    /// Words that identify the upstream and were removed, for operators.
    pub withheld: Option<Box<str>>,
}

impl Verdict {
    /// The frame without the parts at `dropped`, which are in the order of the text.
    pub(super) fn relay_without(text: &str, dropped: &[Range<usize>]) -> Self {
        if dropped.is_empty() {
            return Self::Relay;
        }
        let mut kept = String::with_capacity(text.len());
        let mut from = 0;
        for part in dropped {
            kept.push_str(text.get(from..part.start).unwrap_or_default());
            from = part.end;
        }
        kept.push_str(text.get(from..).unwrap_or_default());
        Self::Replace(kept)
    }

    pub(super) fn refuse(failure: Failure, event_id: Option<String>) -> Self {
        Self::Refuse {
            failure: Box::new(failure),
            event_id,
        }
    }
}

/// The usage of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MeterReading {
    /// Seconds of a realtime session, rounded up.
    pub realtime_seconds: u64,
    /// Text inputs of a realtime session.
    pub text_inputs: u64,
    /// Tokens of text and images of the responses of a realtime session that have ended: as they
    /// reported them, otherwise by our count. Those of transcripts are included.
    pub text: NonAudioTokens,
    /// Tokens of the open responses by our count. They are held until these report their usage.
    pub open_text: NonAudioTokens,
    /// Characters of streaming speech.
    pub characters: u64,
    /// Seconds of streaming transcription, rounded up.
    pub transcribed_seconds: u64,
}

impl MeterReading {
    /// The final reading of a session, after which no open response can report its usage.
    #[must_use]
    pub fn ended(self) -> Self {
        Self {
            text: self.text.plus(self.open_text),
            open_text: NonAudioTokens::default(),
            ..self
        }
    }
}
