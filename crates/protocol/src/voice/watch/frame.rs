//! What a watch is told, and what it tells.

use super::text_tokens::TextTokens;
use crate::failure::Failure;

/// A message of a session, as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// JSON, as a rule.
    Text(&'a str),
    /// Audio.
    Binary(&'a [u8]),
}

/// What becomes of a caller's frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on as it is.
    Relay,
    /// It stays here, and the caller is told why. The session goes on.
    Refuse {
        /// Why.
        failure: Box<Failure>,
        /// The caller's own id of the event.
        event_id: Option<String>,
    },
}

/// What takes the place of an upstream's frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The text for the caller.
    pub text: String,
    /// Words of the upstream about itself that are not in it; for the operator.
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

/// What a session has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// Seconds of a realtime session, rounded up.
    pub realtime_seconds: u64,
    /// Text inputs of a realtime session.
    pub text_inputs: u64,
    /// Text tokens that the responses of a realtime session have reported.
    pub text: TextTokens,
    /// Text tokens of the response under way, as counted: they are held for until it reports.
    pub open_text: TextTokens,
    /// Characters of streaming speech.
    pub characters: u64,
    /// Seconds of streaming transcripts, rounded up.
    pub heard_seconds: u64,
}

impl Reading {
    /// The reading at the end of a session: the response under way will report nothing any more.
    #[must_use]
    pub fn ended(self) -> Self {
        Self {
            text: self.text.plus(self.open_text),
            open_text: TextTokens::default(),
            ..self
        }
    }
}
