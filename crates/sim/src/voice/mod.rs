//! Voice: speech made of tones, transcripts, and voices.

mod form;
mod refusal;
pub(crate) mod socket;
mod sound;
mod speech;
mod transcript;
mod voices;

pub(crate) use speech::SpeechCall;
pub(crate) use transcript::TranscriptCall;
pub(crate) use voices::{list, show};
