//! The Messages protocol: answers, streams, thinking that comes back, refusals.

use crate::client::{KEY, call, messages};
use serde_json::{Value, json};
use sim::Sim;

async fn start() -> Sim {
    Sim::start("127.0.0.1:0").await.unwrap()
}

/// A request with a question, and other members laid over it.
fn request(question: &str, changes: Value) -> Value {
    let mut request = json!({"model": "sim-chat", "max_tokens": 3000,
        "messages": [{"role": "user", "content": question}]});
    let (Value::Object(members), Value::Object(changes)) = (&mut request, changes) else {
        panic!("both are objects");
    };
    members.extend(changes);
    request
}

fn weather_tools() -> Value {
    let tool = |name: &str| {
        json!({"name": name, "input_schema": {"type": "object",
            "properties": {"city": {"type": "string"}}, "required": ["city"]}})
    };
    json!([tool("get_weather"), tool("get_time"), {"name": "ring_bell", "input_schema": {"type": "object"}}])
}

/// Folds a stream into the message that an unstreamed call would give, as a client does.
fn folded(events: &[(String, Value)]) -> Value {
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
                        let told = block[member].as_str().unwrap().to_owned();
                        block[member] = json!(told + delta[member].as_str().unwrap());
                    }
                }
                match delta["type"].as_str().unwrap() {
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

/// Ids differ between two calls; everything else must not.
fn without_ids(message: &Value) -> Value {
    let mut message = message.clone();
    message["id"] = Value::Null;
    for block in message["content"].as_array_mut().unwrap() {
        if block["type"] == "tool_use" {
            block["id"] = Value::Null;
        }
    }
    message
}

#[tokio::test]
async fn an_answer_is_shaped_as_the_vendor_does() {
    let sim = start().await;
    let answer = messages(&sim, &request("say exactly: Hello", json!({}))).await;
    assert_eq!(answer.status, 200);
    assert!(answer.header("request-id").unwrap().starts_with("req_sim"));
    assert_eq!(
        answer.header("anthropic-organization-id"),
        Some("sim-org-4711")
    );
    assert_eq!(answer.header("openai-organization"), None);
    let message = answer.json();
    assert!(message["id"].as_str().unwrap().starts_with("msg_01Sim"));
    assert_eq!(
        without_ids(&message),
        json!({"model": "sim-chat-2026-01-01", "id": null, "type": "message", "role": "assistant",
            "content": [{"type": "text", "text": "Hello"}], "stop_reason": "end_turn",
            "stop_sequence": null, "stop_details": null,
            "usage": {"input_tokens": 12, "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0, "cache_creation": {"ephemeral_5m_input_tokens": 0,
                "ephemeral_1h_input_tokens": 0}, "output_tokens": 1,
                "output_tokens_details": {"thinking_tokens": 0}, "service_tier": "standard",
                "inference_geo": "sim-geo-4711"}})
    );
}

#[tokio::test]
async fn a_stream_has_the_events_of_the_vendor_in_their_order() {
    let sim = start().await;
    let changes = json!({"stream": true, "thinking": {"type": "adaptive"}, "tools": weather_tools(),
        "output_config": {"effort": "low"}});
    let request = request("Explain and ring the bell", changes);
    let answer = messages(&sim, &request).await;
    let mut names: Vec<_> = answer
        .named_events()
        .iter()
        .map(|(name, data)| match data["delta"]["type"].as_str() {
            Some(kind) => kind.to_owned(),
            None => name.clone(),
        })
        .collect();
    names.dedup();
    assert_eq!(
        names,
        [
            "message_start",
            "content_block_start",
            "ping",
            "thinking_delta",
            "signature_delta",
            "content_block_stop",
            "content_block_start",
            "text_delta",
            "content_block_stop",
            "content_block_start",
            "input_json_delta",
            "content_block_stop",
            "message_delta",
            "message_stop",
        ]
    );
}

#[tokio::test]
async fn a_folded_stream_is_the_whole_answer() {
    let sim = start().await;
    for (question, changes) in [
        ("Where do rivers go?", json!({})),
        ("Count to 30", json!({"max_tokens": 9})),
        ("Count to 30", json!({"stop_sequences": ["7", "5"]})),
        ("please refuse (bio)", json!({})),
        (
            "世界",
            json!({"thinking": {"type": "enabled", "budget_tokens": 2000}}),
        ),
        (
            "Hello",
            json!({"thinking": {"type": "adaptive", "display": "omitted"}}),
        ),
        (
            "redact your thinking",
            json!({"thinking": {"type": "adaptive"}}),
        ),
        (
            "Explain. Weather and time in Paris, and ring the bell",
            json!({"tools": weather_tools(), "thinking": {"type": "adaptive"}}),
        ),
        (
            "name is Ada, age is 7",
            json!({"output_config": {"format": {"type": "json_schema", "schema": {
                "type": "object", "properties": {"name": {"type": "string"},
                "age": {"type": "integer"}}, "required": ["name", "age"],
                "additionalProperties": false}}}}),
        ),
    ] {
        let mut asked = request(question, changes);
        let whole = messages(&sim, &asked).await.json();
        asked["stream"] = json!(true);
        let events = messages(&sim, &asked).await.named_events();
        assert_eq!(
            without_ids(&folded(&events)),
            without_ids(&whole),
            "{question}"
        );
    }
}

#[tokio::test]
async fn a_credential_and_a_version_are_needed() {
    let sim = start().await;
    let body = request("Hi", json!({})).to_string();
    for (head, status, kind) in [
        ("", 401, "authentication_error"),
        (
            "x-api-key: sim-bad-key\r\nanthropic-version: 2023-06-01\r\n",
            401,
            "authentication_error",
        ),
        ("x-api-key: k\r\n", 400, "invalid_request_error"),
        (
            "x-api-key: k\r\nanthropic-version: 2000-01-01\r\n",
            400,
            "invalid_request_error",
        ),
    ] {
        let answer = call(&sim, "POST", "/v1/messages", head, body.as_bytes()).await;
        let error = answer.json();
        assert_eq!(
            (answer.status, &error["error"]["type"]),
            (status, &json!(kind)),
            "{head}"
        );
        assert_eq!(answer.header("request-id"), error["request_id"].as_str());
    }
    let head = format!("authorization: Bearer {KEY}\r\nanthropic-version: 2026-10-21\r\n");
    let answer = call(&sim, "POST", "/v1/messages", &head, body.as_bytes()).await;
    assert_eq!(answer.status, 200);
    let warm = request("Hi", json!({"temperature": 1})).to_string();
    let answer = call(&sim, "POST", "/v1/messages", &head, warm.as_bytes()).await;
    assert_eq!(
        answer.json()["error"]["message"],
        "temperature: Extra inputs are not permitted"
    );
}
