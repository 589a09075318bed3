//! Voice: speech, transcripts, sessions, and the voices that speak.

mod bounds;
mod lanes;
mod model;
mod purse;
mod session;
mod socket;
mod speech;
mod tariff;
mod transcript;
mod voices;

pub use bounds::SocketBounds;
pub use socket::{OpenSocket, SocketCall, SocketKind};
pub use speech::{SpeechCall, VoiceForm};
pub use transcript::TranscriptCall;
pub use voices::VoicesCall;
