//! Checks that a client of this dialect can assemble a stream, event by event.

use std::fmt::Debug;

use serde_json::Value;

/// Checks a stream as the accumulators of the official client libraries do, and more strictly. Each event has a
/// name, blocks are complete and numbered without gaps, and nothing follows the end. Returns the first error.
pub(crate) fn check(stream: &str) -> Result<(), String> {
    let mut state = State::default();
    let mut frames = stream.split("\n\n").peekable();
    while let Some(frame) = frames.next() {
        if frames.peek().is_none() {
            return match (frame, state.position) {
                ("", StreamPosition::Ended | StreamPosition::Failed) => Ok(()),
                rest => Err(format!("the stream ends in {rest:?}")),
            };
        }
        let Some((name, data)) = frame
            .strip_prefix("event: ")
            .and_then(|frame| frame.split_once("\ndata: "))
        else {
            return Err(format!("{frame:?} is not an event with a name and data"));
        };
        if data.contains(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']) {
            return Err(format!("{data:?} has a line end"));
        }
        let data: Value = serde_json::from_str(data).map_err(|error| format!("{error}: {data}"))?;
        wants("type", &data["type"], &Value::from(name))?;
        state.event(name, &data)?;
    }
    Err("there is no stream".to_owned())
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum StreamPosition {
    #[default]
    Before,
    Between,
    Inside(Kind),
    StopReasonSent,
    Ended,
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Thinking { signed: bool },
    Redacted,
    Tool,
}

#[derive(Debug, Default)]
struct State {
    position: StreamPosition,
    next: u64,
    calls: u32,
}

fn wants<T: PartialEq + Debug + ?Sized>(what: &str, found: &T, wanted: &T) -> Result<(), String> {
    if found == wanted {
        Ok(())
    } else {
        Err(format!("{what} is {found:?}, not {wanted:?}"))
    }
}

fn is_count(value: &Value) -> Result<(), String> {
    value
        .as_u64()
        .map(drop)
        .ok_or_else(|| format!("{value} is no count"))
}

fn is_text(value: &Value) -> Result<(), String> {
    value
        .as_str()
        .map(drop)
        .ok_or_else(|| format!("{value} is no text"))
}

impl State {
    fn event(&mut self, name: &str, data: &Value) -> Result<(), String> {
        if matches!(
            self.position,
            StreamPosition::Ended | StreamPosition::Failed
        ) {
            return Err(format!("{name} follows the end"));
        }
        match (name, self.position) {
            ("ping", _) => Ok(()),
            ("error", _) => {
                self.position = StreamPosition::Failed;
                is_text(&data["error"]["type"])?;
                is_text(&data["error"]["message"])
            }
            ("message_start", StreamPosition::Before) => {
                self.position = StreamPosition::Between;
                start(&data["message"])
            }
            ("content_block_start", StreamPosition::Between) => {
                wants("index", &data["index"], &Value::from(self.next))?;
                self.position = StreamPosition::Inside(self.block(&data["content_block"])?);
                Ok(())
            }
            ("content_block_delta", StreamPosition::Inside(kind)) => {
                wants("index", &data["index"], &Value::from(self.next))?;
                self.position = StreamPosition::Inside(delta(kind, &data["delta"])?);
                Ok(())
            }
            ("content_block_stop", StreamPosition::Inside(kind)) => {
                wants("index", &data["index"], &Value::from(self.next))?;
                if kind == (Kind::Thinking { signed: false }) {
                    return Err("a thinking block ends without a signature".to_owned());
                }
                self.next += 1;
                self.position = StreamPosition::Between;
                Ok(())
            }
            ("message_delta", StreamPosition::Between) => {
                self.position = StreamPosition::StopReasonSent;
                self.end(data)
            }
            ("message_stop", StreamPosition::StopReasonSent) => {
                self.position = StreamPosition::Ended;
                Ok(())
            }
            (name, position) => Err(format!("{name} at {position:?}")),
        }
    }

    fn block(&mut self, block: &Value) -> Result<Kind, String> {
        match block["type"].as_str() {
            Some("text") => {
                wants("text", &block["text"], &Value::from(""))?;
                Ok(Kind::Text)
            }
            Some("thinking") => {
                wants("thinking", &block["thinking"], &Value::from(""))?;
                wants("signature", &block["signature"], &Value::from(""))?;
                Ok(Kind::Thinking { signed: false })
            }
            Some("redacted_thinking") => {
                is_text(&block["data"])?;
                Ok(Kind::Redacted)
            }
            Some("tool_use") => {
                self.calls += 1;
                let id = block["id"].as_str().unwrap_or_default();
                let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
                if id.is_empty() || !id.bytes().all(allowed) {
                    return Err(format!("{id:?} is no id of a call"));
                }
                is_text(&block["name"])?;
                wants("input", &block["input"], &serde_json::json!({}))?;
                Ok(Kind::Tool)
            }
            _ => Err(format!("{block} is no block")),
        }
    }

    fn end(&self, data: &Value) -> Result<(), String> {
        let delta = &data["delta"];
        let reason = delta["stop_reason"].as_str().unwrap_or_default();
        let known = [
            "end_turn",
            "max_tokens",
            "stop_sequence",
            "tool_use",
            "pause_turn",
            "refusal",
            "model_context_window_exceeded",
        ];
        if !known.contains(&reason) {
            return Err(format!("{reason:?} is no stop reason"));
        }
        if reason == "tool_use" && self.calls == 0 {
            return Err("tool_use without a call".to_owned());
        }
        wants(
            "stop_sequence",
            &delta["stop_sequence"].is_string(),
            &(reason == "stop_sequence"),
        )?;
        wants(
            "stop_details",
            &delta["stop_details"].is_object(),
            &(reason == "refusal"),
        )?;
        is_count(&data["usage"]["input_tokens"])?;
        is_count(&data["usage"]["output_tokens"])
    }
}

fn start(message: &Value) -> Result<(), String> {
    let id = message["id"].as_str().unwrap_or_default();
    wants("id", &id.starts_with("msg_"), &true)?;
    wants("type", &message["type"], &Value::from("message"))?;
    wants("role", &message["role"], &Value::from("assistant"))?;
    is_text(&message["model"])?;
    wants("content", &message["content"], &serde_json::json!([]))?;
    wants("stop_reason", &message["stop_reason"], &Value::Null)?;
    is_count(&message["usage"]["input_tokens"])?;
    is_count(&message["usage"]["output_tokens"])
}

fn delta(kind: Kind, delta: &Value) -> Result<Kind, String> {
    let (name, text, then) = match kind {
        Kind::Text => ("text_delta", "text", kind),
        Kind::Tool => ("input_json_delta", "partial_json", kind),
        Kind::Thinking { signed: false } if delta["type"] == "signature_delta" => (
            "signature_delta",
            "signature",
            Kind::Thinking { signed: true },
        ),
        Kind::Thinking { signed: false } => ("thinking_delta", "thinking", kind),
        Kind::Thinking { signed: true } | Kind::Redacted => {
            return Err(format!("{delta} follows what was whole"));
        }
    };
    wants("delta", &delta["type"], &Value::from(name))?;
    is_text(&delta[text])?;
    Ok(then)
}
