//! Runs a realtime session: receives audio, detects turns, and answers with tones and text.

use super::super::sound::{Codec, tone};
use super::super::speech::CHAR_MS;
use super::session_socket::{PeerMessage, SessionOver, SessionSocket};
use crate::seal;
use crate::tokens::count_tokens;
use crate::true_usage::SessionUsage;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};

/// The number of bytes of a turn with voice activity detection: one second of 16-bit audio at 24 kHz.
const TURN_BYTES: usize = 48_000;
const PITCH: u32 = 440;

pub(super) async fn run<S: AsyncRead + AsyncWrite + Unpin>(
    socket: SessionSocket<S>,
    model: &str,
) -> SessionUsage {
    let session = json!({
        "type": "realtime", "object": "realtime.session", "id": "sess_sim", "model": model,
        "voice": "eve", "instructions": "",
        "turn_detection": {"type": "server_vad", "threshold": 0.85},
        "audio": {"input": {"format": {"type": "audio/pcm", "rate": 24000}},
                  "output": {"format": {"type": "audio/pcm", "rate": 24000}}},
        "tools": [],
    });
    let mut realtime = Realtime {
        socket,
        session,
        events: 0,
        items: 0,
        heard_bytes: 0,
        last_text: String::new(),
    };
    let _ = realtime.run().await;
    realtime.socket.usage
}

struct Realtime<S> {
    socket: SessionSocket<S>,
    session: Value,
    events: u64,
    items: u64,
    heard_bytes: usize,
    last_text: String,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Realtime<S> {
    async fn run(&mut self) -> Result<(), SessionOver> {
        let session = self.session.clone();
        self.send_event(json!({"type": "session.created", "session": session}))
            .await?;
        self.send_event(
            json!({"type": "conversation.created", "conversation": {"id": "conv_sim"}}),
        )
        .await?;
        loop {
            match self.socket.next().await? {
                PeerMessage::Audio(bytes) => self.receive_audio(bytes).await?,
                PeerMessage::Event(event) => self.take(&event).await?,
            }
        }
    }

    async fn send_event(&mut self, mut event: Value) -> Result<(), SessionOver> {
        self.events += 1;
        event["event_id"] = json!(format!("event_sim_{}", self.events));
        self.socket.send_event(event).await
    }

    fn has_voice_activity(&self) -> bool {
        !self.session["turn_detection"].is_null()
    }

    /// Changes the given settings. Clients may set turn detection in two places, but it is always reported in the
    /// top-level one.
    fn update(&mut self, changes: &Value) {
        merge(&mut self.session, changes);
        let input = self.session["audio"]["input"].as_object_mut();
        if let Some(turns) = input.and_then(|input| input.remove("turn_detection")) {
            self.session["turn_detection"] = turns;
        }
    }

    /// The codec and sample rate for `input` or `output`.
    fn format(&self, direction: &str) -> (Codec, u32) {
        let format = &self.session["audio"][direction]["format"];
        let rate = format["rate"].as_u64().and_then(|it| it.try_into().ok());
        match format["type"].as_str() {
            Some("audio/pcmu") => (Codec::Mulaw, 8_000),
            Some("audio/pcma") => (Codec::Alaw, 8_000),
            _ => (Codec::Pcm, rate.unwrap_or(24_000)),
        }
    }

    async fn take(&mut self, event: &Value) -> Result<(), SessionOver> {
        match event["type"].as_str().unwrap_or_default() {
            "session.update" => {
                self.update(&event["session"]);
                let session = self.session.clone();
                self.send_event(json!({"type": "session.updated", "session": session}))
                    .await
            }
            "input_audio_buffer.append" => {
                let audio = event["audio"].as_str().unwrap_or_default();
                let padding = audio.len() - audio.trim_end_matches('=').len();
                self.receive_audio((audio.len() / 4 * 3).saturating_sub(padding))
                    .await
            }
            "input_audio_buffer.commit" => {
                self.heard_bytes = 0;
                self.send_event(
                    json!({"type": "input_audio_buffer.committed", "item_id": "item_audio"}),
                )
                .await
            }
            "input_audio_buffer.clear" => {
                self.heard_bytes = 0;
                self.send_event(json!({"type": "input_audio_buffer.cleared"}))
                    .await
            }
            "conversation.item.create" => {
                self.items += 1;
                self.note(&event["item"]);
                let mut item = event["item"].clone();
                item["id"] = json!(format!("item_sim_{}", self.items));
                if let Some(text) = item["content"][0]["text"].as_str() {
                    text.clone_into(&mut self.last_text);
                }
                self.send_event(json!({"type": "conversation.item.added", "item": item}))
                    .await
            }
            "response.create" => {
                let asked = event["response"]["instructions"].as_str();
                self.respond(asked.unwrap_or_default()).await
            }
            "response.cancel" | "conversation.item.delete" | "conversation.item.truncate" => Ok(()),
            other => {
                let message = format!("unknown event type {other}");
                self.send_event(
                    json!({"type": "error", "error": {"type": "invalid_request_error",
                    "code": "unknown_event", "message": message, "param": "type",
                    "event_id": event.get("event_id")}}),
                )
                .await
            }
        }
    }

    /// Counts text items, which are billed. Function results and audio are not billed as items.
    fn note(&mut self, item: &Value) {
        let parts = item["content"].as_array();
        let has_audio = parts.is_some_and(|parts| {
            let is_audio = |part: &Value| {
                let audio = part["audio"].as_str().unwrap_or_default();
                !audio.trim().is_empty()
            };
            parts.iter().any(is_audio)
        });
        if item["type"] != "function_call_output" && !has_audio {
            self.socket.usage.text_inputs += 1;
        }
    }

    async fn receive_audio(&mut self, bytes: usize) -> Result<(), SessionOver> {
        self.heard_bytes += bytes;
        self.socket.usage.heard_us += sound_us(self.format("input"), bytes);
        if self.has_voice_activity() && self.heard_bytes >= TURN_BYTES {
            self.heard_bytes = 0;
            for event in [
                "input_audio_buffer.speech_started",
                "input_audio_buffer.speech_stopped",
                "input_audio_buffer.committed",
            ] {
                self.send_event(json!({"type": event, "item_id": "item_audio"}))
                    .await?;
            }
            self.respond("").await?;
        }
        Ok(())
    }

    /// The text tokens of a response. Audio tokens are reported as 0.
    fn usage(&self, asked: &str, output: &Value) -> Value {
        let instructions = self.session["instructions"].as_str().unwrap_or_default();
        let input = [instructions, asked, &self.last_text];
        let input_tokens: u64 = input.into_iter().map(count_tokens).sum();
        let output_tokens = output["content"][0]["text"]
            .as_str()
            .map_or(0, count_tokens);
        json!({"input_tokens": input_tokens, "output_tokens": output_tokens, "total_tokens": input_tokens + output_tokens,
            "input_token_details": {"text_tokens": input_tokens, "audio_tokens": 0},
            "output_token_details": {"text_tokens": output_tokens, "audio_tokens": 0}})
    }

    async fn respond(&mut self, asked: &str) -> Result<(), SessionOver> {
        let id = format!("resp_sim_{}", self.events);
        self.send_event(json!({"type": "response.created",
            "response": {"id": id, "object": "realtime.response", "status": "in_progress", "output": []}}))
            .await?;
        let function = self.session["tools"].as_array().and_then(|tools| {
            let mut names = tools.iter().filter_map(|tool| tool["name"].as_str());
            names.find(|name| self.last_text.contains(name))
        });
        let output = match function.map(str::to_owned) {
            Some(name) => self.call(&id, &name).await?,
            None => self.speak(&id).await?,
        };
        let usage = self.usage(asked, &output);
        self.send_event(json!({"type": "response.done", "response": {"id": id,
            "object": "realtime.response", "status": "completed", "output": [output],
            "usage": usage}}))
            .await
    }

    async fn call(&mut self, id: &str, name: &str) -> Result<Value, SessionOver> {
        let arguments = "{\"place\":\"here\"}";
        self.send_event(
            json!({"type": "response.function_call_arguments.delta", "response_id": id,
            "item_id": "item_call", "output_index": 0, "call_id": "call_sim", "delta": arguments}),
        )
        .await?;
        self.send_event(
            json!({"type": "response.function_call_arguments.done", "response_id": id,
            "item_id": "item_call", "output_index": 0, "call_id": "call_sim", "name": name,
            "arguments": arguments}),
        )
        .await?;
        Ok(
            json!({"type": "function_call", "id": "item_call", "call_id": "call_sim", "name": name,
            "arguments": arguments}),
        )
    }

    async fn speak(&mut self, id: &str) -> Result<Value, SessionOver> {
        let words = if self.last_text.is_empty() {
            "I heard tones.".to_owned()
        } else {
            format!("You said: {}", self.last_text)
        };
        let place = json!({"response_id": id, "item_id": "item_out", "output_index": 0,
            "content_index": 0});
        let with = |kind: &str, name: &str, value: &str| {
            let mut event = place.clone();
            event["type"] = json!(kind);
            if !name.is_empty() {
                event[name] = json!(value);
            }
            event
        };
        let is_text = self.session["output_modalities"] == json!(["text"]);
        if is_text {
            self.send_event(with("response.output_text.delta", "delta", &words))
                .await?;
            self.send_event(with("response.output_text.done", "text", &words))
                .await?;
        } else {
            let characters = u64::try_from(words.chars().count()).unwrap_or_default();
            let (codec, rate) = self.format("output");
            let sound = tone(codec, rate, PITCH, characters * CHAR_MS);
            self.socket.usage.spoken_us += sound_us((codec, rate), sound.len());
            let is_binary = self.session["audio"]["output"]["transport"] == "binary";
            for piece in sound.chunks(9_600) {
                if is_binary {
                    self.socket.send_audio(piece.to_vec()).await?;
                    continue;
                }
                let piece = seal::encode(piece);
                self.send_event(with("response.output_audio.delta", "delta", &piece))
                    .await?;
            }
            self.send_event(with(
                "response.output_audio_transcript.delta",
                "delta",
                &words,
            ))
            .await?;
            self.send_event(with(
                "response.output_audio_transcript.done",
                "transcript",
                &words,
            ))
            .await?;
            self.send_event(with("response.output_audio.done", "", ""))
                .await?;
        }
        let content = if is_text {
            json!({"type": "output_text", "text": words})
        } else {
            json!({"type": "output_audio", "transcript": words})
        };
        Ok(
            json!({"type": "message", "id": "item_out", "role": "assistant", "status": "completed",
            "content": [content]}),
        )
    }
}

/// The duration of this many bytes of audio, in microseconds.
fn sound_us((codec, rate): (Codec, u32), bytes: usize) -> u64 {
    let sample_bytes = if codec == Codec::Pcm { 2 } else { 1 };
    let per_second = u64::from(rate).max(1) * sample_bytes;
    u64::try_from(bytes).unwrap_or_default() * 1_000_000 / per_second
}

/// Changes the given settings and keeps the others.
fn merge(settings: &mut Value, changes: &Value) {
    match (settings, changes) {
        (Value::Object(settings), Value::Object(changes)) => {
            for (name, change) in changes {
                merge(settings.entry(name).or_insert(Value::Null), change);
            }
        }
        (settings, changes) => *settings = changes.clone(),
    }
}
