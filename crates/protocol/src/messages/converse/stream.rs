//! Turns the events of a Converse stream into those of Messages.
//!
//! Text and reasoning have no event that starts their block, so the first delta opens it. The stop reason comes
//! before the usage, and both are sent together.

use super::answer::{write_call, write_identity, write_redacted, write_text, write_thought};
use super::usage::{stop_reason, write_usage};
use crate::json::write::{self, Object};
use crate::json::{Cursor, Integer, Raw, SyntaxError, utf8};
use crate::messages::fields::Fields;

/// The state of a stream.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// The open block, by its index in the stream.
    open: Option<u64>,
    /// The number of opened blocks. Blocks are renumbered, because those that Messages does not have are left out.
    opened: u64,
    begun: bool,
    stop: Option<Stop>,
}

/// The stop reason of the message, and the sequence that stopped it.
#[derive(Debug)]
struct Stop {
    reason: String,
    sequence: Option<String>,
}

impl Events {
    /// Writes an event of the stream as server-sent events of Messages. Unknown events are ignored, because
    /// an answer can be read without them.
    pub(crate) fn event(
        &mut self,
        name: &str,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), SyntaxError> {
        let mut cursor = Cursor::new(utf8(payload)?);
        let fields = Fields::read(&mut cursor)?;
        cursor.end()?;
        let mut event = fields.unwrap_or_default();
        let index = event.take("contentBlockIndex").and_then(|it| it.integer());
        let index = index.map_or(0, Integer::saturating);
        match name {
            "messageStart" => self.begin(out),
            "contentBlockStart" => {
                let start = event.take("start").and_then(Fields::of);
                let call = start.and_then(|mut start| start.take("toolUse"));
                if let Some(mut call) = call.and_then(Fields::of) {
                    self.open(index, out, |it| {
                        write_call(it, &mut call);
                        it.object("input", |_| {});
                    });
                }
            }
            "contentBlockDelta" => {
                if let Some(delta) = event.take("delta").and_then(Fields::of) {
                    self.delta(index, delta, out);
                }
            }
            "contentBlockStop" => self.close(out),
            "messageStop" => {
                let more = event
                    .take("additionalModelResponseFields")
                    .and_then(Fields::of);
                let sequence = more.and_then(|mut more| more.string("stop_sequence"));
                self.stop = Some(Stop {
                    reason: event.string("stopReason").unwrap_or_default().into_owned(),
                    sequence: sequence.map(Into::into),
                });
            }
            "metadata" => self.end(event.take("usage"), out),
            _ => {}
        }
        Ok(())
    }

    /// Begins the message, once. Its usage is not known yet.
    fn begin(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        send(out, "message_start", |it| {
            it.object("message", |it| {
                write_identity(it);
                it.array("content", |_| {});
                it.null("stop_reason").null("stop_sequence");
                it.object("usage", |it| {
                    it.number("input_tokens", 0).number("output_tokens", 0);
                });
            });
        });
    }

    fn delta(&mut self, index: u64, mut delta: Fields<'_>, out: &mut Vec<u8>) {
        if let Some(text) = delta.string("text") {
            self.open(index, out, |it| write_text(it, ""));
            self.send_delta(out, "text_delta", "text", &text);
        } else if let Some(mut call) = delta.take("toolUse").and_then(Fields::of) {
            if let Some(input) = call.string("input") {
                self.send_delta(out, "input_json_delta", "partial_json", &input);
            }
        } else if let Some(thought) = delta.take("reasoningContent").and_then(Fields::of) {
            self.thought(index, thought, out);
        }
    }

    fn thought(&mut self, index: u64, mut thought: Fields<'_>, out: &mut Vec<u8>) {
        if let Some(text) = thought.string("text") {
            self.open(index, out, |it| write_thought(it, "", ""));
            self.send_delta(out, "thinking_delta", "thinking", &text);
        } else if let Some(signature) = thought.string("signature") {
            self.open(index, out, |it| write_thought(it, "", ""));
            self.send_delta(out, "signature_delta", "signature", &signature);
        } else if let Some(data) = thought.string("redactedContent") {
            self.open(index, out, |it| write_redacted(it, &data));
        }
    }

    /// Opens the block with this index, unless it is open.
    fn open(&mut self, index: u64, out: &mut Vec<u8>, block: impl FnOnce(&mut Object<'_>)) {
        if self.open == Some(index) {
            return;
        }
        self.begin(out);
        self.close(out);
        self.open = Some(index);
        let number = self.opened;
        self.opened = self.opened.saturating_add(1);
        send(out, "content_block_start", |it| {
            it.number("index", number).object("content_block", block);
        });
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if self.open.take().is_some() {
            let number = self.last();
            send(out, "content_block_stop", |it| {
                it.number("index", number);
            });
        }
    }

    /// Sends a delta of the open block. Without an open block, the delta is ignored.
    fn send_delta(&self, out: &mut Vec<u8>, kind: &str, member: &str, piece: &str) {
        if self.open.is_some() {
            send(out, "content_block_delta", |it| {
                it.number("index", self.last());
                it.object("delta", |it| {
                    it.text("type", kind).text(member, piece);
                });
            });
        }
    }

    fn last(&self) -> u64 {
        self.opened.saturating_sub(1)
    }

    /// Ends the message. Writes nothing if the stream gave no stop reason, because the stream was then cut
    /// off.
    fn end(&mut self, usage: Option<Raw<'_>>, out: &mut Vec<u8>) {
        let Some(stop) = self.stop.take() else {
            return;
        };
        self.begin(out);
        self.close(out);
        let reason = match stop_reason(&stop.reason) {
            Some(reason) => reason,
            // The model failed. If there is no output yet, another route may answer.
            None if self.opened == 0 => {
                return send(out, "error", |it| {
                    it.object("error", |it| {
                        it.text("type", "modelErrorException");
                        it.text("message", &stop.reason);
                    });
                });
            }
            None => "end_turn",
        };
        send(out, "message_delta", |it| {
            it.object("delta", |it| {
                it.text("stop_reason", reason);
                it.text_or_null("stop_sequence", stop.sequence.as_deref());
            });
            if let Some(usage) = usage {
                it.object("usage", |it| write_usage(it, usage));
            }
        });
        send(out, "message_stop", |_| {});
    }
}

fn send(out: &mut Vec<u8>, name: &str, write: impl FnOnce(&mut Object<'_>)) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    write::object(out, |it| {
        it.text("type", name);
        write(it);
    });
    out.extend_from_slice(b"\n\n");
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The name of each event, and its data without the type.
    fn read(events: &[(&str, Value)]) -> Vec<(String, Value)> {
        let mut stream = Events::default();
        let mut out = Vec::new();
        for (name, event) in events {
            let payload = event.to_string();
            stream.event(name, payload.as_bytes(), &mut out).unwrap();
        }
        let text = String::from_utf8(out).unwrap();
        let events = text.split_terminator("\n\n").map(|event| {
            let (name, data) = event.split_once('\n').unwrap();
            let name = name.strip_prefix("event: ").unwrap();
            let data = data.strip_prefix("data: ").unwrap();
            let mut data: Value = serde_json::from_str(data).unwrap();
            assert_eq!(data["type"], name);
            data.as_object_mut().unwrap().remove("type");
            (name.to_owned(), data)
        });
        events.collect()
    }

    fn delta(index: u64, delta: &Value) -> (&'static str, Value) {
        let event = json!({ "contentBlockIndex": index, "delta": delta, "p": "abc" });
        ("contentBlockDelta", event)
    }

    #[test]
    fn blocks_are_opened_where_the_stream_does_not() {
        let stop = |index: u64| ("contentBlockStop", json!({ "contentBlockIndex": index }));
        let call = json!({ "toolUse": { "toolUseId": "t", "name": "look" } });
        let usage = json!({ "inputTokens": 3, "outputTokens": 4, "totalTokens": 7 });
        let sent = read(&[
            ("messageStart", json!({ "role": "assistant" })),
            delta(0, &json!({ "reasoningContent": { "text": "hm" } })),
            delta(0, &json!({ "reasoningContent": { "signature": "s" } })),
            stop(0),
            delta(
                1,
                &json!({ "reasoningContent": { "redactedContent": "AA" } }),
            ),
            stop(1),
            delta(2, &json!({ "text": "Hi" })),
            delta(2, &json!({ "text": "!" })),
            stop(2),
            (
                "contentBlockStart",
                json!({ "contentBlockIndex": 4, "start": call }),
            ),
            delta(4, &json!({ "toolUse": { "input": "{}" } })),
            stop(4),
            stop(5),
            ("messageStop", json!({ "stopReason": "tool_use" })),
            (
                "metadata",
                json!({ "usage": usage, "metrics": { "latencyMs": 1 } }),
            ),
        ]);
        let names: Vec<_> = sent.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names.first(), Some(&"message_start"));
        assert_eq!(names.last(), Some(&"message_stop"));
        let blocks: Vec<_> = sent.iter().map(|(_, data)| data.clone()).collect();
        assert_eq!(
            blocks[1..blocks.len() - 1],
            [
                json!({ "index": 0, "content_block": { "type": "thinking", "thinking": "", "signature": "" } }),
                json!({ "index": 0, "delta": { "type": "thinking_delta", "thinking": "hm" } }),
                json!({ "index": 0, "delta": { "type": "signature_delta", "signature": "s" } }),
                json!({ "index": 0 }),
                json!({ "index": 1, "content_block": { "type": "redacted_thinking", "data": "AA" } }),
                json!({ "index": 1 }),
                json!({ "index": 2, "content_block": { "type": "text", "text": "" } }),
                json!({ "index": 2, "delta": { "type": "text_delta", "text": "Hi" } }),
                json!({ "index": 2, "delta": { "type": "text_delta", "text": "!" } }),
                json!({ "index": 2 }),
                json!({ "index": 3, "content_block": { "type": "tool_use", "id": "t", "name": "look", "input": {} } }),
                json!({ "index": 3, "delta": { "type": "input_json_delta", "partial_json": "{}" } }),
                json!({ "index": 3 }),
                json!({
                    "delta": { "stop_reason": "tool_use", "stop_sequence": null },
                    "usage": { "input_tokens": 3, "output_tokens": 4 },
                }),
            ]
        );
    }

    #[test]
    fn a_model_that_failed_is_an_error_until_something_was_shown() {
        let failed = ("messageStop", json!({ "stopReason": "malformed_tool_use" }));
        let end = ("metadata", json!({}));
        let sent = read(&[failed.clone(), end.clone()]);
        assert_eq!(sent.last().unwrap().0, "error");
        let sent = read(&[delta(0, &json!({ "text": "a" })), failed, end]);
        assert_eq!(sent.last().unwrap().0, "message_stop");
        assert_eq!(sent[sent.len() - 2].1["delta"]["stop_reason"], "end_turn");
    }

    #[test]
    fn a_stream_without_its_last_events_has_no_end() {
        let text = delta(0, &json!({ "text": "a" }));
        let stop = ("messageStop", json!({ "stopReason": "end_turn" }));
        for events in [&[text.clone(), stop][..], &[text, ("metadata", json!({}))]] {
            let sent = read(events);
            assert!(sent.iter().all(|(name, _)| name != "message_stop"));
        }
    }

    #[test]
    fn events_of_any_form_are_passed_over_and_what_is_no_json_is_not() {
        for event in [
            json!(null),
            json!([]),
            json!({ "delta": 1 }),
            json!({ "delta": { "toolUse": 1 } }),
            json!({ "start": { "image": {} } }),
            json!({ "delta": { "toolUse": { "input": "{" } } }),
        ] {
            for name in [
                "contentBlockStart",
                "contentBlockDelta",
                "contentBlockStop",
                "other",
            ] {
                assert_eq!(read(&[(name, event.clone())]), []);
            }
        }
        let mut stream = Events::default();
        for payload in [&b"{"[..], b"\xff", b"{} x"] {
            assert!(stream.event("metadata", payload, &mut Vec::new()).is_err());
        }
    }
}
