//! Serves `POST /v1/stt`: transcribes the audio of a multipart form.

use super::refusal::invalid;
use crate::call_context::CallContext;
use crate::fault::UsageFault;
use crate::multipart::{self, Part};
use crate::openai::{self};
use crate::protocol::{ErrorReplies, IncomingCall, Protocol};
use crate::reply::Reply;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};

/// The assumed duration of audio that is given as a URL.
const URL_MS: u64 = 90_000;

/// A call whose form has been parsed.
#[derive(Debug)]
pub(crate) struct TranscriptCall {
    model: String,
    parts: Vec<Part>,
}

impl TranscriptCall {
    fn field(&self, name: &str) -> Option<String> {
        let part = self.parts.iter().find(|part| part.name == name);
        part.map(|part| String::from_utf8_lossy(&part.data).into_owned())
    }

    fn input_ms(&self) -> Result<u64, Reply> {
        let file = self.parts.iter().position(|part| part.name == "file");
        match (file, self.field("url")) {
            (Some(_), Some(_)) | (None, None) => Err(invalid("exactly one of file and url")),
            (None, Some(_)) => Ok(URL_MS),
            (Some(place), None) if place + 1 != self.parts.len() => {
                Err(invalid("file must be the last part"))
            }
            (Some(place), None) => {
                let data = self.parts.get(place).map(|part| part.data.as_slice());
                let data = data.unwrap_or_default();
                self.duration_ms(data)
                    .ok_or_else(|| invalid("the audio cannot be read"))
            }
        }
    }

    /// The duration of the audio: from the header of a WAV file, or from the sample rate of raw audio. Other formats
    /// count as audio of 32 kbit/s.
    fn duration_ms(&self, data: &[u8]) -> Option<u64> {
        let bytes = u64::try_from(data.len()).ok()?;
        if data.starts_with(b"RIFF") {
            let rate = data.get(28..32)?.try_into().ok().map(u32::from_le_bytes)?;
            return (bytes.saturating_sub(44) * 1000).checked_div(rate.into());
        }
        let sample_bytes = match self.field("audio_format").as_deref() {
            Some("pcm") => 2,
            Some("mulaw" | "alaw") => 1,
            _ => return Some(bytes / 4),
        };
        let rate: u64 = self.field("sample_rate")?.parse().ok()?;
        (bytes * 1000).checked_div(rate * sample_bytes)
    }
}

impl Protocol for TranscriptCall {
    fn read(call: &IncomingCall<'_>) -> Result<Self, Reply> {
        openai::authorise(&call.parts.headers, call.settings)
            .map_err(|refusal| openai::failure(&refusal))?;
        let content_type = call.parts.headers.get(CONTENT_TYPE);
        let parts = content_type
            .and_then(|value| multipart::parse(value.to_str().ok()?, call.body))
            .ok_or_else(|| invalid("the form cannot be read"))?;
        let model = parts.iter().find(|part| part.name == "model");
        let model = model.map(|part| String::from_utf8_lossy(&part.data).into_owned());
        let model = model.ok_or_else(|| invalid("model is required"))?;
        Ok(Self { model, parts })
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn answer(&self, context: &CallContext<'_>) -> Reply {
        let millis = match self.input_ms() {
            Ok(millis) => millis,
            Err(refusal) => return refusal,
        };
        let hundredths = millis.div_ceil(10);
        let duration = format!("{}.{:02}", hundredths / 100, hundredths % 100);
        let duration: Value = serde_json::from_str(&duration).unwrap_or_default();
        let words = ["It", "sounds", "like", "tones."];
        let mut answer = json!({
            "text": words.join(" "),
            "language": self.field("language").unwrap_or_default(),
            "duration": duration,
            "words": words.map(|word| json!({"text": word, "start": 0.0, "end": duration})),
        });
        if matches!(context.script.usage, UsageFault::Missing)
            && let Some(answer) = answer.as_object_mut()
        {
            answer.remove("duration");
        }
        Reply::json(StatusCode::OK, answer.to_string())
    }

    fn errors(&self) -> &dyn ErrorReplies {
        &openai::JsonErrors
    }
}
