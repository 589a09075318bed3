//! Serves `POST /v1/tts`: speech, simulated with tones.

use super::refusal::{invalid, no_such_voice};
use super::sound::{Codec, tone};
use super::voices::pitch;
use crate::call_context::CallContext;
use crate::openai::{self};
use crate::protocol::{ErrorReplies, IncomingCall, Protocol};
use crate::reply::{Event, EventKind, Reply};
use crate::seal;
use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};

/// The model name for which faults are queued, because requests to this endpoint name no model.
const NAME: &str = "sim-tts";
const TEXT_CHARS_MAX: usize = 15_000;
/// The duration of the speech for one character.
pub(super) const CHAR_MS: u64 = 60;
const PIECE_BYTES: usize = 4096;
const RATES: [u64; 6] = [8000, 16_000, 22_050, 24_000, 44_100, 48_000];
const BIT_RATES: [u64; 5] = [32_000, 64_000, 96_000, 128_000, 192_000];

/// A call whose request has not been checked yet.
#[derive(Debug)]
pub(crate) struct SpeechCall(Value);

impl Protocol for SpeechCall {
    fn read(call: &IncomingCall<'_>) -> Result<Self, Reply> {
        openai::authorise(&call.parts.headers, call.settings)
            .and_then(|()| openai::parse(call.body))
            .map(Self)
            .map_err(|refusal| openai::failure(&refusal))
    }

    fn model(&self) -> &str {
        NAME
    }

    fn answer(&self, _: &CallContext<'_>) -> Reply {
        match SpeechRequest::read(&self.0) {
            Ok(wanted) => wanted.speak(),
            Err(refusal) => refusal,
        }
    }

    fn errors(&self) -> &dyn ErrorReplies {
        &openai::JsonErrors
    }
}

struct SpeechRequest {
    text: String,
    codec: Codec,
    rate: u32,
    pitch: u32,
    with_timestamps: bool,
}

impl SpeechRequest {
    fn read(request: &Value) -> Result<Self, Reply> {
        if request.get("model").is_some() {
            return Err(invalid("unknown field `model`"));
        }
        let text = request["text"].as_str().unwrap_or_default();
        if !(1..=TEXT_CHARS_MAX).contains(&text.chars().count()) {
            return Err(invalid("text must have between 1 and 15000 characters"));
        }
        if request["language"].as_str().is_none_or(str::is_empty) {
            return Err(invalid("language is required"));
        }
        if let Some(speed) = request["speed"].as_f64()
            && !(0.7..=1.5).contains(&speed)
        {
            return Err(invalid("speed must be between 0.7 and 1.5"));
        }
        let voice = request["voice_id"].as_str().unwrap_or("eve");
        let pitch = pitch(voice).ok_or_else(|| no_such_voice(voice))?;
        let format = &request["output_format"];
        let number = |name: &str, usual: u64, known: &[u64]| {
            let value = format.get(name).map_or(Some(usual), Value::as_u64);
            let value = value.filter(|value| known.contains(value));
            let value = value.and_then(|value| u32::try_from(value).ok());
            value.ok_or_else(|| invalid(&format!("output_format.{name} is not supported")))
        };
        let bit_rate = number("bit_rate", 128_000, &BIT_RATES)?;
        let codec = match format["codec"].as_str().unwrap_or("mp3") {
            "mp3" => Codec::Mp3 { bit_rate },
            "wav" => Codec::Wav,
            "pcm" => Codec::Pcm,
            "mulaw" => Codec::Mulaw,
            "alaw" => Codec::Alaw,
            _ => return Err(invalid("output_format.codec is not supported")),
        };
        Ok(Self {
            text: text.to_owned(),
            codec,
            rate: number("sample_rate", 24_000, &RATES)?,
            pitch,
            with_timestamps: request["with_timestamps"] == json!(true),
        })
    }

    fn speak(&self) -> Reply {
        let characters = u64::try_from(self.text.chars().count()).unwrap_or_default();
        let millis = characters * CHAR_MS;
        let sound = tone(self.codec, self.rate, self.pitch, millis);
        if self.with_timestamps {
            return self.timed(&sound, millis);
        }
        let sound = Bytes::from(sound);
        let pieces = (0..sound.len()).step_by(PIECE_BYTES).map(move |at| Event {
            kind: EventKind::Content,
            bytes: sound.slice(at..(at + PIECE_BYTES).min(sound.len())),
        });
        Reply::events_as(self.codec.content_type(), pieces)
    }

    fn timed(&self, sound: &[u8], millis: u64) -> Reply {
        let times: Vec<Value> = (0u64..)
            .zip(self.text.chars())
            .map(|(at, _)| json!([stamp(at * CHAR_MS), stamp((at + 1) * CHAR_MS)]))
            .collect();
        let chars: Vec<String> = self.text.chars().map(String::from).collect();
        let body = json!({
            "audio": seal::encode(sound),
            "content_type": self.codec.content_type(),
            "duration": stamp(millis),
            "audio_timestamps": {"graph_chars": chars, "graph_times": times},
        });
        Reply::json(StatusCode::OK, body.to_string())
    }
}

/// Converts milliseconds to seconds with decimals.
fn stamp(millis: u64) -> Value {
    let text = format!("{}.{:03}", millis / 1000, millis % 1000);
    serde_json::from_str(&text).unwrap_or_default()
}
