//! Voice: speech made of tones, transcripts of it, and the voices that speak.

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
