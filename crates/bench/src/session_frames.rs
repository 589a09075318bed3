//! The frames of sessions, built once before the first session.
//!
//! The load generator sends frames with 20 ms of audio each, and puts a timestamp into every fifth.
//! The upstream answers a stamped frame with a frame that carries the same timestamp. This gives
//! the round-trip time.

use std::io::Write as _;
use std::time::Duration;

use crate::frame::{self, Frame, Kind, Sender};

/// The audio in one frame, and the interval between frames.
pub(crate) const FRAME_TIME: Duration = Duration::from_millis(20);
/// The upstream answers one frame out of this many. While one side of a session speaks, the other
/// sends little.
const ANSWERED_EVERY: u64 = 5;
/// One frame of 16-bit PCM at 24 kHz: 480 samples, 20 ms.
const AUDIO_BYTES: usize = 960;
const STAMP_BYTES: usize = 16;
const STAMP: &str = "0000000000000000";
/// Marks a frame without a stamp, which is not answered.
pub(crate) const UNSTAMPED: Stamp = [b'0'; STAMP_BYTES];

/// Nanoseconds on the load generator's clock, in decimal digits.
pub(crate) type Stamp = [u8; STAMP_BYTES];

pub(crate) fn stamp(nanos: u64) -> Stamp {
    let mut stamp = UNSTAMPED;
    // A time of more than a hundred days would not fit.
    let _ = write!(&mut stamp[..], "{nanos:0STAMP_BYTES$}");
    stamp
}

pub(crate) fn nanos(stamp: Stamp) -> Option<u64> {
    str::from_utf8(&stamp).ok()?.parse().ok()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionKind {
    /// Audio in both directions, in JSON.
    Realtime,
    /// Audio in binary frames; the answers are text.
    Transcript,
}

impl SessionKind {
    /// The kind of session that a request target asks for.
    pub(crate) fn of_target(target: &str) -> Option<Self> {
        let path = target.split('?').next()?;
        [Self::Realtime, Self::Transcript]
            .into_iter()
            .find(|kind| path.ends_with(kind.path()))
    }

    /// The path that follows the base URL.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Realtime => "/realtime",
            Self::Transcript => "/stt",
        }
    }

    /// The query parameters other than the model.
    pub(crate) fn query(self) -> &'static str {
        match self {
            Self::Realtime => "",
            Self::Transcript => "&encoding=pcm&sample_rate=24000",
        }
    }

    /// The first frame of the upstream. It selects manual turns, so that every audio frame is
    /// metered.
    pub(crate) fn opening(self) -> Vec<u8> {
        let event = match self {
            Self::Realtime => {
                r#"{"type":"session.created","event_id":"event_0","session":{"id":"sess_0","object":"realtime.session","model":"fixed","voice":"eve","turn_detection":null,"audio":{"input":{"format":{"type":"audio/pcm","rate":24000}},"output":{"format":{"type":"audio/pcm","rate":24000}}},"tools":[]}}"#
            }
            Self::Transcript => r#"{"type":"transcript.created","id":"trs_0"}"#,
        };
        frame::write(Kind::Text, Sender::Server, event.as_bytes())
    }

    /// An audio frame of the client.
    pub(crate) fn audio(self) -> Stamped {
        match self {
            Self::Realtime => Stamped::text(
                Sender::Client,
                &format!(
                    r#"{{"type":"input_audio_buffer.append","event_id":"{STAMP}","audio":"{}"}}"#,
                    base64_audio()
                ),
            ),
            Self::Transcript => {
                let silence = vec![0; AUDIO_BYTES - STAMP_BYTES];
                let audio = [STAMP.as_bytes(), &silence].concat();
                Stamped::new(Kind::Binary, Sender::Client, &audio, 0)
            }
        }
    }

    /// The upstream's answer to an audio frame.
    pub(crate) fn answer(self) -> Stamped {
        let event = match self {
            Self::Realtime => format!(
                r#"{{"type":"response.output_audio.delta","event_id":"{STAMP}","response_id":"resp_0123456789abcdef","item_id":"item_0123456789abcdef","output_index":0,"content_index":0,"delta":"{}"}}"#,
                base64_audio()
            ),
            Self::Transcript => format!(
                r#"{{"type":"transcript.partial","text":"{STAMP}","words":[],"is_final":false,"speech_final":false,"start":0.0,"duration":0.02}}"#
            ),
        };
        Stamped::text(Sender::Server, &event)
    }
}

/// Arbitrary base64 characters, which are never decoded.
fn base64_audio() -> String {
    let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    letters.chars().cycle().take(AUDIO_BYTES / 3 * 4).collect()
}

/// A frame in which only the timestamp changes.
#[derive(Debug, Clone)]
pub(crate) struct Stamped {
    bytes: Vec<u8>,
    payload_bytes: usize,
    /// The position of the timestamp in the payload.
    stamp_at: usize,
}

impl Stamped {
    fn new(kind: Kind, sender: Sender, payload: &[u8], stamp_at: usize) -> Self {
        Self {
            bytes: frame::write(kind, sender, payload),
            payload_bytes: payload.len(),
            stamp_at,
        }
    }

    fn text(sender: Sender, event: &str) -> Self {
        let stamp_at = event.find(STAMP).unwrap_or_default();
        Self::new(Kind::Text, sender, event.as_bytes(), stamp_at)
    }

    /// Writes a timestamp into the frame and returns the frame.
    pub(crate) fn with(&mut self, stamp: Stamp) -> &[u8] {
        let at = self.bytes.len() - self.payload_bytes + self.stamp_at;
        self.bytes[at..at + STAMP_BYTES].copy_from_slice(&stamp);
        &self.bytes
    }

    /// The timestamp of a frame; `None` if the frame is of another kind or has no timestamp.
    pub(crate) fn stamp_of(&self, frame: &Frame, bytes: &[u8]) -> Option<Stamp> {
        if frame.payload.len() != self.payload_bytes {
            return None;
        }
        let stamp = frame.piece(bytes, self.stamp_at);
        stamp.filter(|stamp| *stamp != UNSTAMPED)
    }
}

/// Whether the frame with this number is answered in the session with this index. The index spreads
/// the answers of different sessions over time.
pub(crate) fn is_answered(number: u64, session: u64) -> bool {
    (number + session).is_multiple_of(ANSWERED_EVERY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_found_where_they_were_put() {
        for kind in [SessionKind::Realtime, SessionKind::Transcript] {
            for mut stamped in [kind.audio(), kind.answer()] {
                let bytes = stamped.with(stamp(1_234_567)).to_vec();
                let frame = Frame::read(&bytes).unwrap().unwrap();
                let found = stamped.stamp_of(&frame, &bytes).unwrap();
                assert_eq!(nanos(found), Some(1_234_567));
                assert_eq!(frame.payload.end, bytes.len());
                let unstamped = stamped.with(UNSTAMPED).to_vec();
                assert_eq!(stamped.stamp_of(&frame, &unstamped), None);
                let opening = kind.opening();
                let frame = Frame::read(&opening).unwrap().unwrap();
                assert_eq!(stamped.stamp_of(&frame, &opening), None);
            }
        }
    }

    #[test]
    fn events_are_json_and_their_audio_is_20_ms() {
        let event = |bytes: &[u8]| -> serde_json::Value {
            let frame = Frame::read(bytes).unwrap().unwrap();
            serde_json::from_slice(&bytes[frame.payload]).unwrap()
        };
        for kind in [SessionKind::Realtime, SessionKind::Transcript] {
            assert!(event(&kind.opening())["type"].is_string());
            assert!(event(kind.answer().with(stamp(1)))["type"].is_string());
        }
        let audio = event(SessionKind::Realtime.audio().with(stamp(1)));
        assert_eq!(audio["audio"].as_str().unwrap().len(), 1280);
        assert_eq!(SessionKind::Transcript.audio().payload_bytes, 960);
    }

    #[test]
    fn a_target_names_the_kind_of_session() {
        for (target, kind) in [
            ("/v1/realtime?model=fixed", Some(SessionKind::Realtime)),
            ("/v1/stt", Some(SessionKind::Transcript)),
            ("/v1/chat/completions?x=/stt", None),
        ] {
            assert_eq!(SessionKind::of_target(target), kind, "{target}");
        }
    }
}
