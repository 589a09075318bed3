//! Converts answers and streams of Messages to those of Converse.

use bytes::{Bytes, BytesMut};
use serde_json::{Value, json};

use super::frame::{event, padding, reframed};
use super::invoke::exception_of;
use crate::reply::Event;

/// Converts a whole answer. A body that is not a message stays unchanged.
pub(super) fn answer(body: &Bytes) -> Bytes {
    let Ok(message) = serde_json::from_slice::<Value>(body) else {
        return body.clone();
    };
    let Some(blocks) = message["content"].as_array() else {
        return body.clone();
    };
    let content: Vec<Value> = blocks.iter().map(block).collect();
    let mut answer = json!({
        "output": { "message": { "role": "assistant", "content": content } },
        "stopReason": reason(&message["stop_reason"]),
        "metrics": { "latencyMs": 421 },
    });
    if message["usage"].is_object() {
        answer["usage"] = counts(&message["usage"]);
    }
    if message["stop_sequence"].is_string() {
        answer["additionalModelResponseFields"] =
            json!({ "stop_sequence": message["stop_sequence"] });
    }
    answer.to_string().into()
}

fn block(block: &Value) -> Value {
    match block["type"].as_str() {
        Some("tool_use") => json!({ "toolUse": {
            "toolUseId": block["id"], "name": block["name"], "input": block["input"],
        } }),
        Some("thinking") => json!({ "reasoningContent": { "reasoningText": {
            "text": block["thinking"], "signature": block["signature"],
        } } }),
        Some("redacted_thinking") => {
            json!({ "reasoningContent": { "redactedContent": block["data"] } })
        }
        _ => json!({ "text": block["text"] }),
    }
}

fn reason(reason: &Value) -> Value {
    match reason.as_str() {
        Some("refusal") => "content_filtered".into(),
        _ => reason.clone(),
    }
}

/// The token counts. Counts that the model does not report are left out.
fn counts(usage: &Value) -> Value {
    let mut counts = json!({});
    let mut total = Some(0);
    for (name, own) in [
        ("input_tokens", "inputTokens"),
        ("output_tokens", "outputTokens"),
        ("cache_read_input_tokens", "cacheReadInputTokens"),
        ("cache_creation_input_tokens", "cacheWriteInputTokens"),
    ] {
        if let Some(count) = usage.get(name).filter(|count| !count.is_null()) {
            counts[own] = count.clone();
            total = total
                .zip(count.as_u64())
                .map(|(sum, count): (u64, u64)| sum.saturating_add(count));
        }
    }
    if let Some(total) = total {
        counts["totalTokens"] = total.into();
    }
    let cache_writes = &usage["cache_creation"];
    let details = [
        ("5m", "ephemeral_5m_input_tokens"),
        ("1h", "ephemeral_1h_input_tokens"),
    ];
    let details = details.into_iter().filter_map(|(ttl, name)| {
        let tokens = cache_writes[name].as_u64().filter(|tokens| *tokens > 0)?;
        Some(json!({ "ttl": ttl, "inputTokens": tokens }))
    });
    let details: Vec<Value> = details.collect();
    if !details.is_empty() {
        counts["cacheDetails"] = details.into();
    }
    counts
}

/// Converts the events of a stream to frames.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// The usage reported so far. Messages reports the input at the start, but Converse reports all usage at the end.
    usage: Value,
}

impl Frames {
    /// Converts an event to frames; `None` if Converse has no such event.
    pub(super) fn framed(&mut self, sse: &Event) -> Option<Event> {
        reframed(sse, |data| self.frames_of(data))
    }

    fn frames_of(&mut self, data: &str) -> Option<Bytes> {
        let Ok(event) = serde_json::from_str::<Value>(data) else {
            return Some(self::event("contentBlockDelta", data.as_bytes()));
        };
        let index = &event["index"];
        Some(match event["type"].as_str()? {
            "message_start" => {
                self.usage = event["message"]["usage"].clone();
                padded("messageStart", json!({ "role": "assistant" }))
            }
            "content_block_start" => block_start(index, &event["content_block"])?,
            "content_block_delta" => {
                let delta = delta(&event["delta"])?;
                padded(
                    "contentBlockDelta",
                    json!({ "contentBlockIndex": index, "delta": delta }),
                )
            }
            "content_block_stop" => {
                padded("contentBlockStop", json!({ "contentBlockIndex": index }))
            }
            "message_delta" => self.end(&event),
            "error" => exception_of(&event["error"]),
            _ => return None,
        })
    }

    fn end(&mut self, event: &Value) -> Bytes {
        let mut stop = json!({ "stopReason": reason(&event["delta"]["stop_reason"]) });
        if event["delta"]["stop_sequence"].is_string() {
            let sequence = json!({ "stop_sequence": event["delta"]["stop_sequence"] });
            stop["additionalModelResponseFields"] = sequence;
        }
        let mut frames = BytesMut::from(&padded("messageStop", stop)[..]);
        let mut metadata = json!({ "metrics": { "latencyMs": 421 } });
        if let (Some(usage), Some(last)) = (self.usage.as_object_mut(), event["usage"].as_object())
        {
            let reported = last.iter().filter(|(_, value)| !value.is_null());
            usage.extend(reported.map(|(name, value)| (name.clone(), value.clone())));
            metadata["usage"] = counts(&self.usage);
        }
        frames.extend_from_slice(&padded("metadata", metadata));
        frames.freeze()
    }
}

/// The frame that opens a block. Only tool calls have a start event. Redacted thinking is one delta, and other blocks
/// begin with their first delta.
fn block_start(index: &Value, block: &Value) -> Option<Bytes> {
    match block["type"].as_str()? {
        "tool_use" => {
            let start = json!({ "toolUse": { "toolUseId": block["id"], "name": block["name"] } });
            let event = json!({ "contentBlockIndex": index, "start": start });
            Some(padded("contentBlockStart", event))
        }
        "redacted_thinking" => {
            let delta = json!({ "reasoningContent": { "redactedContent": block["data"] } });
            let event = json!({ "contentBlockIndex": index, "delta": delta });
            Some(padded("contentBlockDelta", event))
        }
        _ => None,
    }
}

fn delta(delta: &Value) -> Option<Value> {
    Some(match delta["type"].as_str()? {
        "text_delta" => json!({ "text": delta["text"] }),
        "input_json_delta" => json!({ "toolUse": { "input": delta["partial_json"] } }),
        "thinking_delta" => json!({ "reasoningContent": { "text": delta["thinking"] } }),
        "signature_delta" => json!({ "reasoningContent": { "signature": delta["signature"] } }),
        _ => return None,
    })
}

fn padded(kind: &str, mut payload: Value) -> Bytes {
    payload["p"] = padding(payload.to_string().len()).into();
    event(kind, payload.to_string().as_bytes())
}
