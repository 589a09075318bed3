//! Voice: speech, transcripts and lists of voices, in one wire format for all upstreams, and the
//! meter of WebSocket sessions (`watch`).

mod answer;
mod audio_relay;
mod failure;
mod speech;
mod transcript;
mod watch;

pub use answer::{clean_voices, read_timed_speech, read_transcription};
pub use audio_relay::AudioRelay;
pub use failure::read_failure;
pub use speech::{Speech, read_renamed_speech, read_speech};
pub use transcript::{Transcript, read_renamed_transcript, read_transcript};
pub use watch::{
    AudioEncoding, Frame, FrameReplacement, MeterReading, NonAudioTokens, SessionRules, Verdict,
    Watch, write_failure_frame,
};
