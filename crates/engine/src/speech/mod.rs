//! Serves speech, transcripts and lists of voices.

pub(crate) mod model;
mod synthesis;
mod transcript;
mod voices;

pub use synthesis::{SpeechCall, VoiceForm};
pub use transcript::{TranscriptCall, Upload};
pub use voices::VoicesCall;
