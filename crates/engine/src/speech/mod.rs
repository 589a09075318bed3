//! Serves speech, transcripts and lists of voices.

pub(crate) mod model;
mod synthesis;
mod transcript;
mod voices;

pub use synthesis::{SpeechCall, VoiceForm};
pub use transcript::TranscriptCall;
pub use voices::VoicesCall;
