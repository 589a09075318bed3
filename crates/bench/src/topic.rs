//! What is said in sessions, written out once before the first of them.
//!
//! The load generator sends audio, 20 ms in each frame, and stamps every fifth of them. The upstream answers
//! those that are stamped with a frame of its own and the same stamp, which tells when it was asked.

use std::io::Write as _;
use std::time::Duration;

use crate::frame::{self, Frame, Kind, Sender};

/// How much audio is in a frame, and how often one is sent.
pub(crate) const FRAME_TIME: Duration = Duration::from_millis(20);
/// Who listens answers every so many frames: while one side of a session speaks, the other says little.
const ANSWERED_EVERY: u64 = 5;
/// PCM with 16 bits at 24 kHz.
const AUDIO_BYTES: usize = 960;
const STAMP_BYTES: usize = 16;
const STAMP: &str = "0000000000000000";
/// Stands where a frame has no stamp, and is not answered.
pub(crate) const UNSTAMPED: Stamp = [b'0'; STAMP_BYTES];

/// Nanoseconds on the load generator's clock, in decimal digits.
pub(crate) type Stamp = [u8; STAMP_BYTES];

pub(crate) fn stamp(nanos: u64) -> Stamp {
    let mut stamp = UNSTAMPED;
    // A drive of a hundred days does not fit, and is not meant.
    let _ = write!(&mut stamp[..], "{nanos:0STAMP_BYTES$}");
    stamp
}

pub(crate) fn nanos(stamp: Stamp) -> Option<u64> {
    str::from_utf8(&stamp).ok()?.parse().ok()
}

/// What a session is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Topic {
    /// Audio both ways, in JSON.
    Realtime,
    /// Audio in binary frames, words back.
    Transcript,
}

impl Topic {
    /// The topic that a request target asks for.
    pub(crate) fn of_target(target: &str) -> Option<Self> {
        let path = target.split('?').next()?;
        [Self::Realtime, Self::Transcript]
            .into_iter()
            .find(|topic| path.ends_with(topic.path()))
    }

    /// What follows the base URL.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Realtime => "/realtime",
            Self::Transcript => "/stt",
        }
    }

    /// What the query says besides the model.
    pub(crate) fn query(self) -> &'static str {
        match self {
            Self::Realtime => "",
            Self::Transcript => "&encoding=pcm&sample_rate=24000",
        }
    }

    /// The first frame of the upstream. Turns are pushed, so that every frame of audio counts.
    pub(crate) fn opening(self) -> Vec<u8> {
        let event = match self {
            Self::Realtime => {
                r#"{"type":"session.created","event_id":"event_0","session":{"id":"sess_0","object":"realtime.session","model":"fixed","voice":"eve","turn_detection":null,"audio":{"input":{"format":{"type":"audio/pcm","rate":24000}},"output":{"format":{"type":"audio/pcm","rate":24000}}},"tools":[]}}"#
            }
            Self::Transcript => r#"{"type":"transcript.created","id":"trs_0"}"#,
        };
        frame::write(Kind::Text, Sender::Server, event.as_bytes())
    }

    /// A frame of the client's audio.
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

    /// The upstream's answer to such a frame.
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

/// Any letters do, since nobody decodes them.
fn base64_audio() -> String {
    let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    letters.chars().cycle().take(AUDIO_BYTES / 3 * 4).collect()
}

/// A frame that differs from one time to the next in its stamp alone.
#[derive(Debug, Clone)]
pub(crate) struct Stamped {
    bytes: Vec<u8>,
    payload_bytes: usize,
    /// Where the stamp stands in the payload.
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

    /// The frame with this stamp.
    pub(crate) fn with(&mut self, stamp: Stamp) -> &[u8] {
        let at = self.bytes.len() - self.payload_bytes + self.stamp_at;
        self.bytes[at..at + STAMP_BYTES].copy_from_slice(&stamp);
        &self.bytes
    }

    /// The stamp of a frame of this kind; `None` if it is another one, or has none.
    pub(crate) fn stamp_of(&self, frame: &Frame, bytes: &[u8]) -> Option<Stamp> {
        if frame.payload.len() != self.payload_bytes {
            return None;
        }
        let stamp = frame.piece(bytes, self.stamp_at);
        stamp.filter(|stamp| *stamp != UNSTAMPED)
    }
}

/// Whether the frame of this number is answered, in the session of this index: they do not all hear their
/// answers at the same time.
pub(crate) fn is_answered(number: u64, session: u64) -> bool {
    (number + session).is_multiple_of(ANSWERED_EVERY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_found_where_they_were_put() {
        for topic in [Topic::Realtime, Topic::Transcript] {
            for mut stamped in [topic.audio(), topic.answer()] {
                let bytes = stamped.with(stamp(1_234_567)).to_vec();
                let frame = Frame::read(&bytes).unwrap().unwrap();
                let found = stamped.stamp_of(&frame, &bytes).unwrap();
                assert_eq!(nanos(found), Some(1_234_567));
                assert_eq!(frame.payload.end, bytes.len());
                let unstamped = stamped.with(UNSTAMPED).to_vec();
                assert_eq!(stamped.stamp_of(&frame, &unstamped), None);
                let opening = topic.opening();
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
        for topic in [Topic::Realtime, Topic::Transcript] {
            assert!(event(&topic.opening())["type"].is_string());
            assert!(event(topic.answer().with(stamp(1)))["type"].is_string());
        }
        let audio = event(Topic::Realtime.audio().with(stamp(1)));
        assert_eq!(audio["audio"].as_str().unwrap().len(), 1280);
        assert_eq!(Topic::Transcript.audio().payload_bytes, 960);
    }

    #[test]
    fn a_target_tells_the_topic() {
        for (target, topic) in [
            ("/v1/realtime?model=fixed", Some(Topic::Realtime)),
            ("/v1/stt", Some(Topic::Transcript)),
            ("/v1/chat/completions?x=/stt", None),
        ] {
            assert_eq!(Topic::of_target(target), topic, "{target}");
        }
    }
}
