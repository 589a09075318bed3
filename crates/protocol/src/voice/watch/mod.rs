//! Meters WebSocket sessions alongside the relay.
//!
//! A [`Watch`] sees every frame and the time since the session started. It decides whether to relay the frame
//! and how much has been used. It owns no socket and no clock, so tests describe whole sessions as tables.

mod audio;
mod event;
mod failed;
mod frame;
mod prompt;
mod realtime;
mod rules;
mod session;
mod speech;
#[cfg(test)]
mod tests;
mod text_tokens;
mod transcript;

pub use frame::{Frame, FrameReplacement, MeterReading, Verdict};
pub use rules::SessionRules;
pub use text_tokens::NonAudioTokens;
pub use transcript::AudioEncoding;

use crate::failure::Failure;
use crate::scrub::Names;
use realtime::RealtimeMeter;
use speech::SpeechMeter;
use transcript::TranscriptMeter;

/// The meter of one session.
#[derive(Debug)]
pub struct Watch {
    kind: Kind,
    rules: SessionRules,
}

#[derive(Debug)]
enum Kind {
    Realtime(Box<RealtimeMeter>),
    Speech(SpeechMeter),
    Transcript(TranscriptMeter),
}

impl Watch {
    /// For `/v1/realtime`, for a client that knows the model as `public_model`. `context_tokens` is the
    /// context of the model, if it is known. No response counts with more input.
    pub fn realtime(public_model: &str, context_tokens: Option<u64>) -> Self {
        let meter = RealtimeMeter::new(public_model, context_tokens);
        Self::of(Kind::Realtime(Box::new(meter)))
    }

    /// For the `/v1/tts` socket.
    pub fn speech() -> Self {
        Self::of(Kind::Speech(SpeechMeter::default()))
    }

    /// For the `/v1/stt` socket, whose query describes its audio.
    pub fn transcript(encoding: AudioEncoding) -> Self {
        Self::of(Kind::Transcript(TranscriptMeter::new(encoding)))
    }

    fn of(kind: Kind) -> Self {
        Self {
            kind,
            rules: SessionRules::default(),
        }
    }

    /// With these rules for the frames of the client.
    #[must_use]
    pub fn with_rules(self, rules: SessionRules) -> Self {
        Self { rules, ..self }
    }

    /// Takes a frame of the client. A refused frame is not metered.
    pub fn on_client(&mut self, frame: Frame<'_>) -> Verdict {
        if let Some(refused) = self.rules.check(frame) {
            return refused;
        }
        match &mut self.kind {
            Kind::Realtime(realtime) => realtime.on_client(frame),
            Kind::Speech(speak) => speak.on_client(frame),
            Kind::Transcript(listen) => listen.on_client(frame),
        }
    }

    /// Takes a frame of the upstream, `now_ms` after the start of the session. Returns a
    /// replacement if the frame names the model or contains words that identify the upstream.
    pub fn on_upstream(
        &mut self,
        frame: Frame<'_>,
        now_ms: u64,
        names: Names<'_>,
    ) -> Option<FrameReplacement> {
        match (&mut self.kind, frame) {
            (Kind::Realtime(realtime), frame) => realtime.on_upstream(frame, now_ms, names),
            (_, Frame::Text(text)) if failed::may_report_failure(text) => {
                failed::clean_frame(text, names)
            }
            _ => None,
        }
    }

    /// The usage until `now_ms`.
    pub fn reading(&self, now_ms: u64) -> MeterReading {
        match &self.kind {
            Kind::Realtime(realtime) => realtime.reading(now_ms),
            Kind::Speech(speak) => speak.reading(),
            Kind::Transcript(listen) => listen.reading(),
        }
    }
}

/// The frame that ends a session with a failure, or refuses a frame. Clients of all three sockets
/// understand it.
pub fn write_failure_frame(failure: &Failure, event_id: &str, caused_by: Option<&str>) -> String {
    let kind = match failure.status() {
        402 => "insufficient_quota",
        500.. => "server_error",
        _ => "invalid_request_error",
    };
    serde_json::json!({
        "type": "error",
        "event_id": event_id,
        "code": failure.code.as_str(),
        "message": failure.message,
        "error": {
            "type": kind,
            "code": failure.code.as_str(),
            "message": failure.message,
            "param": failure.param.as_deref(),
            "event_id": caused_by,
        },
    })
    .to_string()
}
