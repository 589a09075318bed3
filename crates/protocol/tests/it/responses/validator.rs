//! Checks a stream as the strictest clients do. Written from the protocol, not from our writer.

use serde_json::{Value, json};

/// Replays a stream and returns the response of its last event. Panics where a client would fail.
pub(super) fn replay(stream: &str) -> Value {
    assert!(stream.ends_with("\n\n"));
    let frames: Vec<&str> = stream.split_terminator("\n\n").collect();
    let mut client = Client::default();
    for (number, frame) in frames.iter().enumerate() {
        let (name, data) = frame.split_once('\n').unwrap();
        let data = data.strip_prefix("data: ").unwrap();
        assert!(!data.contains(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']));
        let event: Value = serde_json::from_str(data).unwrap();
        assert_eq!(name.strip_prefix("event: "), event["type"].as_str());
        assert_eq!(event["sequence_number"], number);
        assert!(event["error"].is_null());
        assert!(
            client.last.is_none(),
            "an event behind the last one: {frame}"
        );
        match number {
            0 => assert_eq!(event["type"], "response.created"),
            1 => assert_eq!(event["type"], "response.in_progress"),
            _ => {}
        }
        client.event(&event);
    }
    client.last.expect("a last event")
}

#[derive(Default)]
struct Client {
    id: Option<String>,
    items: Vec<Value>,
    /// Whether the last item is still growing.
    growing: bool,
    last: Option<Value>,
}

impl Client {
    fn event(&mut self, event: &Value) {
        let kind = event["type"].as_str().unwrap();
        match kind {
            "response.created" | "response.in_progress" => {
                assert_eq!(event["response"]["status"], "in_progress");
                assert_eq!(event["response"]["output"], json!([]));
                assert!(event["response"]["usage"].is_null());
                self.lifecycle(&event["response"]);
            }
            "response.completed" | "response.incomplete" => {
                assert!(!self.growing, "an item is not done");
                assert_eq!(event["response"]["output"], json!(self.items));
                assert_eq!(
                    event["response"]["status"],
                    kind.strip_prefix("response.").unwrap()
                );
                self.lifecycle(&event["response"]);
                self.last = Some(event["response"].clone());
            }
            "response.failed" => {
                assert_eq!(event["response"]["status"], "failed");
                assert!(event["response"]["error"]["code"].is_string());
                self.lifecycle(&event["response"]);
                self.last = Some(event["response"].clone());
            }
            "response.output_item.added" => {
                assert!(!self.growing, "the item before is not done");
                assert_eq!(event["output_index"], self.items.len());
                self.items.push(event["item"].clone());
                self.growing = true;
            }
            "response.output_item.done" => {
                assert_eq!(event["output_index"], self.items.len() - 1);
                assert!(self.growing);
                self.done(&event["item"]);
            }
            _ => {
                assert_eq!(event["output_index"], self.items.len() - 1, "{event}");
                assert!(self.growing, "{event}");
                self.grow(kind, event);
            }
        }
    }

    fn lifecycle(&mut self, response: &Value) {
        let id = response["id"].as_str().unwrap().to_owned();
        assert!(id.starts_with("resp_"));
        assert_eq!(self.id.get_or_insert(id.clone()), &id);
        assert_eq!(response["object"], "response");
        assert_eq!(response["store"], false);
        assert!(response["created_at"].is_number() && response["model"].is_string());
        assert!(response["tools"].is_array() && response["parallel_tool_calls"].is_boolean());
        assert!(!response["tool_choice"].is_null());
        for name in [
            "error",
            "incomplete_details",
            "usage",
            "previous_response_id",
        ] {
            assert!(response.get(name).is_some(), "{name}");
        }
    }

    /// The assembled pieces must equal the finished item.
    fn done(&mut self, item: &Value) {
        self.growing = false;
        let built = self.items.last_mut().unwrap();
        if item["type"] == "reasoning" {
            assert!(built.get("encrypted_content").is_none());
            built["encrypted_content"] = item["encrypted_content"].clone();
            if built["encrypted_content"].is_null() {
                built.as_object_mut().unwrap().remove("encrypted_content");
            }
        } else {
            assert_eq!(built["status"], "in_progress");
            built["status"] = item["status"].clone();
            assert_ne!(item["status"], "in_progress");
        }
        assert_eq!(built, item);
    }

    fn grow(&mut self, kind: &str, event: &Value) {
        let item = self.items.last_mut().unwrap();
        assert_eq!(event["item_id"], item["id"]);
        let add = |text: &mut Value, more: &Value| {
            *text = json!(text.as_str().unwrap().to_owned() + more.as_str().unwrap());
        };
        let list = |name: &str| {
            if name.contains("summary") {
                "summary"
            } else {
                "content"
            }
        };
        let at = |name: &str| {
            event[name]
                .as_u64()
                .map_or(0, |at| usize::try_from(at).unwrap())
        };
        let part = at("content_index") + at("summary_index");
        let parts = list(kind);
        match kind {
            "response.content_part.added" | "response.reasoning_summary_part.added" => {
                let parts = item[parts].as_array_mut().unwrap();
                assert_eq!(parts.len(), part);
                parts.push(event["part"].clone());
            }
            "response.output_text.delta" | "response.reasoning_summary_text.delta" => {
                assert!(!event["delta"].as_str().unwrap().is_empty());
                add(&mut item[parts][part]["text"], &event["delta"]);
            }
            "response.refusal.delta" => add(&mut item[parts][part]["refusal"], &event["delta"]),
            "response.output_text.annotation.added" => {
                let annotations = item[parts][part]["annotations"].as_array_mut().unwrap();
                assert_eq!(event["annotation_index"], annotations.len());
                annotations.push(event["annotation"].clone());
            }
            "response.output_text.done" | "response.reasoning_summary_text.done" => {
                assert_eq!(item[parts][part]["text"], event["text"]);
            }
            "response.refusal.done" => assert_eq!(item[parts][part]["refusal"], event["refusal"]),
            "response.content_part.done" | "response.reasoning_summary_part.done" => {
                assert_eq!(item[parts][part], event["part"]);
            }
            "response.function_call_arguments.delta" => {
                add(&mut item["arguments"], &event["delta"]);
            }
            "response.function_call_arguments.done" => {
                assert_eq!(item["arguments"], event["arguments"]);
                assert_eq!(item["name"], event["name"]);
            }
            other => panic!("{other} is no event of this protocol"),
        }
    }
}
