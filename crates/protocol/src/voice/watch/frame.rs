//! The input and output of a watch.

use super::text_tokens::TextTokens;
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
    /// Refuse the frame and tell the client why. The session continues.
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
    /// Text tokens of the ended responses of a realtime session, as they reported them, otherwise by our
    /// count.
    pub text: TextTokens,
    /// Text tokens of the current response by our count. The hold covers them until the response reports its
    /// usage.
    pub open_text: TextTokens,
    /// Characters of streaming speech.
    pub characters: u64,
    /// Seconds of streaming transcription, rounded up.
    pub transcribed_seconds: u64,
}

impl MeterReading {
    /// The final reading of a session, after which the current response cannot report its usage.
    #[must_use]
    pub fn ended(self) -> Self {
        Self {
            text: self.text.plus(self.open_text),
            open_text: TextTokens::default(),
            ..self
        }
    }
}
