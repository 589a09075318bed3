//! Streaming transcription: meters the seconds of audio that are relayed.

use super::audio::base64_bytes;
use super::event::Event;
use super::frame::{Frame, MeterReading, Verdict};
use crate::failure::Failure;

const RATES: [u32; 6] = [8000, 16_000, 22_050, 24_000, 44_100, 48_000];
const CHANNELS_MAX: u64 = 8;

/// The encoding of a session's audio, as its query declares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AudioEncoding {
    bytes_per_second: u64,
}

impl AudioEncoding {
    /// Reads the members of the query that billing depends on. Unknown values are refused before
    /// the session starts.
    pub fn read(
        encoding: Option<&str>,
        sample_rate: Option<&str>,
        multichannel: Option<&str>,
        channels: Option<&str>,
    ) -> Result<Self, Failure> {
        let wrong = |name: &'static str| {
            Failure::invalid(format!("`{name}` has no value that is known.")).param(name)
        };
        let sample_bytes = match encoding.unwrap_or("pcm") {
            "pcm" => 2,
            "mulaw" | "alaw" => 1,
            _ => return Err(wrong("encoding")),
        };
        let rate = sample_rate.map_or(Some(16_000), |rate| rate.parse().ok());
        let rate = rate.filter(|rate| RATES.contains(rate));
        let rate = u64::from(rate.ok_or_else(|| wrong("sample_rate"))?);
        let channels = match multichannel.unwrap_or("false") {
            "false" | "0" => 1,
            "true" | "1" => {
                let channels = channels.map_or(Some(2), |it| it.parse().ok());
                let channels = channels.filter(|it| (2..=CHANNELS_MAX).contains(it));
                channels.ok_or_else(|| wrong("channels"))?
            }
            _ => return Err(wrong("multichannel")),
        };
        Ok(Self {
            bytes_per_second: rate * sample_bytes * channels,
        })
    }

    /// Bytes per second of all channels together.
    pub fn bytes_per_second(self) -> u64 {
        self.bytes_per_second
    }
}

#[derive(Debug)]
pub(super) struct TranscriptMeter {
    encoding: AudioEncoding,
    bytes: u64,
}

impl TranscriptMeter {
    pub(super) fn new(encoding: AudioEncoding) -> Self {
        Self { encoding, bytes: 0 }
    }

    pub(super) fn on_client(&mut self, frame: Frame<'_>) -> Verdict {
        let bytes = match frame {
            Frame::Binary(audio) => u64::try_from(audio.len()).unwrap_or(u64::MAX),
            Frame::Text(text) => audio_bytes(text),
        };
        self.bytes = self.bytes.saturating_add(bytes);
        Verdict::Relay
    }

    pub(super) fn reading(&self) -> MeterReading {
        MeterReading {
            transcribed_seconds: self.bytes.div_ceil(self.encoding.bytes_per_second),
            ..MeterReading::default()
        }
    }
}

/// The bytes of audio in a text frame. An event has them in `audio`. An event without `audio` is free. An
/// upstream may take any other text for base64, so the text counts as base64 (S7 in `docs/invariants.md`).
fn audio_bytes(text: &str) -> u64 {
    let audio = Event::read(text).map(|event| event.text("audio"));
    match audio {
        Ok(Ok(audio)) => audio.map_or(0, |audio| base64_bytes(&audio)),
        // Not an event, or one with a name twice.
        Err(_) | Ok(Err(_)) => base64_bytes(text),
    }
}
