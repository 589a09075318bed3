//! Tests answers and streams of the Messages protocol.

use super::harness::{continued, folded, request, weather_tools, without_ids};
use crate::client::{KEY, PIXEL, call, messages, start};
use serde_json::{Value, json};

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
        ("Rivers? Cite https://a.example/rivers", json!({})),
        (
            "Explain. Weather and time in Paris, and ring the bell",
            json!({"model": "sim-chat+early-content", "tools": weather_tools(),
                "thinking": {"type": "adaptive"}}),
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

#[tokio::test]
async fn media_are_seen_wherever_they_stand() {
    let sim = start().await;
    let image = |kind: &str| json!({"type": "image", "source": {"type": "base64", "media_type": kind, "data": PIXEL}});
    let linked = |url: &str| json!({"type": "image", "source": {"type": "url", "url": url}});
    let ask = async |blocks: Value| {
        let mut asked = request("", json!({}));
        asked["messages"] = json!([{"role": "user", "content": blocks}]);
        messages(&sim, &asked).await
    };
    let answer = ask(json!([image("image/png"), linked("https://example.com/a.png"),
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "abc"}}]))
    .await;
    assert_eq!(
        answer.json()["content"][0]["text"],
        "I received one 1x1 PNG image of 70 bytes, and one image at https://example.com/a.png, \
         and one text file of 3 bytes."
    );
    for (block, part) in [
        (
            image("image/jpeg"),
            "the image appears to be a image/png image",
        ),
        (image("image/tiff"), "media_type: Input should be"),
        (linked("http://example.com/a.png"), "Only HTTPS URLs"),
        (
            json!({"type": "image", "source": {"type": "file", "file_id": "f"}}),
            "File not found: f",
        ),
        (
            json!({"type": "video"}),
            "does not match any of the expected tags",
        ),
    ] {
        let answer = ask(json!([block])).await;
        assert!(
            answer.status == 400 && answer.text().contains(part),
            "{}",
            answer.text()
        );
    }
    let question = "What is the weather in Paris?";
    let call =
        json!({"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"city": "Paris"}});
    let seen = json!({"type": "tool_result", "tool_use_id": "t1", "is_error": true,
        "content": [{"type": "text", "text": "too hot"}, image("image/png")]});
    let mut asked = request("", json!({"tools": weather_tools()}));
    asked["messages"] = continued(question, &json!([call]), &[seen]);
    let answer = messages(&sim, &asked).await.json();
    assert_eq!(
        answer["content"][0]["text"],
        "The get_weather call failed: too hot. I received one 1x1 PNG image of 70 bytes."
    );
}

#[tokio::test]
async fn marked_prompts_are_cached() {
    let sim = start().await;
    let long = "word ".repeat(2000);
    let marked =
        json!({"type": "text", "text": long, "cache_control": {"type": "ephemeral", "ttl": "1h"}});
    let first = json!([{"role": "user", "content": [marked]}]);
    let mut later = first.clone();
    for message in [
        json!({"role": "assistant", "content": "Yes."}),
        json!({"role": "user", "content": "Go on."}),
    ] {
        later.as_array_mut().unwrap().push(message);
    }
    let figures = async |list: &Value| {
        let mut asked = request("", json!({}));
        asked["messages"] = list.clone();
        let usage = messages(&sim, &asked).await.json()["usage"].clone();
        let of = |name: &str| usage[name].as_u64().unwrap();
        assert_eq!(
            usage["cache_creation"]["ephemeral_1h_input_tokens"],
            of("cache_creation_input_tokens")
        );
        (
            of("input_tokens"),
            of("cache_read_input_tokens"),
            of("cache_creation_input_tokens"),
        )
    };
    let (fresh, read, written) = figures(&first).await;
    assert!(fresh < 128 && read == 0 && written > 1900);
    let (fresh, read, written) = figures(&later).await;
    assert!(
        fresh < 140 && read > 1900 && written < 130,
        "{fresh} {read} {written}"
    );
    let mut plain = later.clone();
    plain[0]["content"] = json!(long);
    let mut asked = request("", json!({}));
    asked["messages"] = plain;
    assert_eq!(
        messages(&sim, &asked).await.json()["usage"]["cache_read_input_tokens"],
        0
    );
}

#[tokio::test]
async fn answers_end_in_all_the_vendors_ways() {
    let sim = start().await;
    for (question, changes, reason, sequence, category) in [
        ("Hi", json!({}), "end_turn", Value::Null, Value::Null),
        (
            "Count to 9",
            json!({"max_tokens": 3}),
            "max_tokens",
            Value::Null,
            Value::Null,
        ),
        (
            "Count to 9",
            json!({"stop_sequences": ["5"]}),
            "stop_sequence",
            json!("5"),
            Value::Null,
        ),
        (
            "Ring the bell",
            json!({"tools": weather_tools()}),
            "tool_use",
            Value::Null,
            Value::Null,
        ),
        (
            "please refuse",
            json!({}),
            "refusal",
            Value::Null,
            json!("general_harms"),
        ),
        (
            "Hi",
            json!({"model": "sim-chat+refuse=cyber"}),
            "refusal",
            Value::Null,
            json!("cyber"),
        ),
        (
            "Hi",
            json!({"model": "sim-chat+content-filter"}),
            "refusal",
            Value::Null,
            Value::Null,
        ),
        (
            "Hi",
            json!({"model": "sim-chat+finish=pause_turn"}),
            "pause_turn",
            Value::Null,
            Value::Null,
        ),
    ] {
        let message = messages(&sim, &request(question, changes)).await.json();
        assert_eq!(message["stop_reason"], reason);
        assert_eq!(message["stop_sequence"], sequence, "{reason}");
        assert_eq!(message["stop_details"]["category"], category, "{reason}");
        assert_eq!(message["stop_details"].is_object(), reason == "refusal");
    }
    let cut = request(
        "Weather in Paris",
        json!({"tools": weather_tools(), "max_tokens": 9}),
    );
    let message = messages(&sim, &cut).await.json();
    assert_eq!(message["content"][0]["input"], json!({}));
}
