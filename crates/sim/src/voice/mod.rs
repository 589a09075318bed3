//! The voice protocols: speech (simulated with tones), transcripts, voices, and WebSocket sessions.

mod refusal;
pub(crate) mod socket;
mod sound;
mod speech;
mod transcript;
mod voices;

pub(crate) use speech::SpeechCall;
pub(crate) use transcript::TranscriptCall;
pub(crate) use voices::{list, show};
