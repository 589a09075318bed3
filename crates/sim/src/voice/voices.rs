//! Serves `GET /v1/tts/voices`, and the details of one voice.

use super::refusal::no_such_voice;
use crate::openai::{authorise, failure};
use crate::percent;
use crate::protocol::IncomingCall;
use crate::reply::Reply;
use http::StatusCode;
use serde_json::{Value, json};

/// The name, the language, and the pitch in hertz of each voice.
const VOICES: [(&str, Option<&str>, u32); 4] = [
    ("Eve", Some("en"), 440),
    ("Ara", None, 523),
    ("Leo", Some("en"), 220),
    ("Sal", Some("de"), 330),
];

/// The pitch of a voice. Names are case-insensitive.
pub(super) fn pitch(voice: &str) -> Option<u32> {
    let mut voices = VOICES.iter();
    voices
        .find(|(name, ..)| name.eq_ignore_ascii_case(voice))
        .map(|(.., pitch)| *pitch)
}

fn shape((name, language, _): &(&str, Option<&str>, u32)) -> Value {
    let mut voice = json!({"voice_id": name.to_lowercase(), "name": name});
    if let Some(language) = language {
        voice["language"] = json!(language);
    }
    voice
}

pub(crate) fn list(call: &IncomingCall<'_>) -> Reply {
    if let Err(refusal) = authorise(&call.parts.headers, call.settings) {
        return failure(&refusal);
    }
    let voices: Vec<Value> = VOICES.iter().map(shape).collect();
    Reply::json(StatusCode::OK, json!({"voices": voices}).to_string())
}

pub(crate) fn show(id: &str, call: &IncomingCall<'_>) -> Reply {
    if let Err(refusal) = authorise(&call.parts.headers, call.settings) {
        return failure(&refusal);
    }
    let id = percent::decoded(id);
    let mut voices = VOICES.iter();
    match voices.find(|(name, ..)| name.eq_ignore_ascii_case(&id)) {
        Some(voice) => Reply::json(StatusCode::OK, shape(voice).to_string()),
        None => no_such_voice(&id),
    }
}
