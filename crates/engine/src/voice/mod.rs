//! Voice: speech, transcripts, and the voices that speak.

mod model;
mod speech;
mod transcript;
mod voices;

pub use speech::{SpeechCall, VoiceForm};
pub use transcript::TranscriptCall;
pub use voices::VoicesCall;
