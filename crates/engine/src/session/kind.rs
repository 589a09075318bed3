//! The kinds of sessions.

use ledger::PriceKey;
use protocol::voice::AudioEncoding;

/// The purpose of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionKind {
    Realtime,
    Speech,
    Transcript(AudioEncoding),
}

impl SessionKind {
    /// The price that a model must have to offer sessions of this kind.
    pub(super) fn price_key(self) -> PriceKey {
        match self {
            Self::Realtime => PriceKey::RealtimeMinute,
            Self::Speech => PriceKey::TtsStreamCharacters,
            Self::Transcript(_) => PriceKey::SttStreamSecond,
        }
    }
}
