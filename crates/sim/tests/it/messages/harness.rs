//! Builds requests of the Messages protocol, and joins its streams as a client does.

use crate::client::with;
use serde_json::{Value, json};

/// A request that asks a question, with some members replaced.
pub(crate) fn request(question: &str, changes: Value) -> Value {
    let request = json!({"model": "sim-chat", "max_tokens": 3000,
        "messages": [{"role": "user", "content": question}]});
    with(request, changes)
}

pub(crate) fn weather_tools() -> Value {
    let tool = |name: &str| {
        json!({"name": name, "input_schema": {"type": "object",
            "properties": {"city": {"type": "string"}}, "required": ["city"]}})
    };
    json!([tool("get_weather"), tool("get_time"), {"name": "ring_bell", "input_schema": {"type": "object"}}])
}

/// Joins a stream, as a client does, into the message that a whole answer would contain.
pub(crate) fn folded(events: &[(String, Value)]) -> Value {
    let mut message = Value::Null;
    let mut input = String::new();
    for (name, data) in events {
        assert_eq!(data["type"], *name);
        let index = usize::try_from(data["index"].as_u64().unwrap_or(0)).unwrap();
        match name.as_str() {
            "message_start" => message = data["message"].clone(),
            "content_block_start" => {
                let content = message["content"].as_array_mut().unwrap();
                assert_eq!(index, content.len(), "blocks are dense");
                content.push(data["content_block"].clone());
                input.clear();
            }
            "content_block_delta" => {
                let block = &mut message["content"][index];
                let delta = &data["delta"];
                for (kind, member) in [("text_delta", "text"), ("thinking_delta", "thinking")] {
                    if delta["type"] == kind {
                        let before = block[member].as_str().unwrap().to_owned();
                        block[member] = json!(before + delta[member].as_str().unwrap());
                    }
                }
                match delta["type"].as_str().unwrap() {
                    "citations_delta" => {
                        let citations = block["citations"].as_array_mut().unwrap();
                        citations.push(delta["citation"].clone());
                    }
                    "signature_delta" => block["signature"] = delta["signature"].clone(),
                    "input_json_delta" => {
                        input.push_str(delta["partial_json"].as_str().unwrap());
                        if let Ok(whole) = serde_json::from_str(&input) {
                            block["input"] = whole;
                        }
                    }
                    _ => {}
                }
            }
            "message_delta" => {
                for member in ["stop_reason", "stop_sequence", "stop_details"] {
                    message[member] = data["delta"][member].clone();
                }
                message["usage"] = data["usage"].clone();
            }
            "content_block_stop" | "ping" | "message_stop" => {}
            other => panic!("unknown event {other}"),
        }
    }
    message
}

/// Removes the ids, which differ between two calls, so that the messages can be compared.
pub(crate) fn without_ids(message: &Value) -> Value {
    let mut message = message.clone();
    message["id"] = Value::Null;
    for block in message["content"].as_array_mut().unwrap() {
        if block["type"] == "tool_use" {
            block["id"] = Value::Null;
        }
    }
    message
}

/// A history that consists of a question, an answer and the results of its calls.
pub(crate) fn continued(question: &str, content: &Value, results: &[Value]) -> Value {
    json!([
        {"role": "user", "content": question},
        {"role": "assistant", "content": content},
        {"role": "user", "content": results},
    ])
}
