//! Tests answers and streams of the Responses protocol.

use super::harness::{folded, request, tools, without_ids};
use crate::client::{responses, start};
use serde_json::{Value, json};

#[tokio::test]
async fn a_folded_stream_is_the_whole_answer() {
    let sim = start().await;
    for (question, changes) in [
        ("Where do rivers go?", json!({})),
        ("Count to 30", json!({"max_output_tokens": 16})),
        ("please refuse", json!({})),
        (
            "say exactly: hi",
            json!({"include": ["message.output_text.logprobs"], "top_logprobs": 3}),
        ),
        (
            "世界",
            json!({"reasoning": {"effort": "high", "summary": "detailed"}}),
        ),
        (
            "Hello",
            json!({"model": "sim-reason", "stream_options": {"include_obfuscation": false}}),
        ),
        ("Hello", json!({"model": "sim-chat+content-filter"})),
        (
            "Think",
            json!({"reasoning": {"effort": "max", "summary": "auto"}, "max_output_tokens": 20}),
        ),
        (
            "Explain. Weather and time in Paris, and run code",
            json!({"tools": tools(),
            "reasoning": {"effort": "low", "summary": "concise"}}),
        ),
        ("Rivers? Cite https://a.example/rivers", json!({})),
        (
            "Think aloud",
            json!({"model": "sim-open", "reasoning": {"effort": "low"}}),
        ),
        (
            "name is Ada, age is 7",
            json!({"text": {"format": {"type": "json_schema", "name": "p",
            "schema": {"type": "object", "properties": {"name": {"type": "string"},
            "age": {"type": "integer"}}, "required": ["name", "age"]}}}}),
        ),
    ] {
        let mut asked = request(question, changes);
        let whole = responses(&sim, &asked).await.json();
        asked["stream"] = json!(true);
        let events = responses(&sim, &asked).await.named_events();
        assert_eq!(
            without_ids(&folded(&events)),
            without_ids(&whole),
            "{question}"
        );
    }
}

#[tokio::test]
async fn the_request_is_repeated_in_the_answer() {
    let sim = start().await;
    let plain = responses(&sim, &json!({"model": "sim-chat", "input": "Hi"}))
        .await
        .json();
    for (member, value) in [
        ("object", json!("response")),
        ("status", json!("completed")),
        ("model", json!("sim-chat-2026-01-01")),
        ("error", Value::Null),
        ("incomplete_details", Value::Null),
        ("instructions", Value::Null),
        ("store", json!(true)),
        ("tool_choice", json!("auto")),
        ("tools", json!([])),
        ("temperature", json!(1.0)),
        (
            "text",
            json!({"format": {"type": "text"}, "verbosity": "medium"}),
        ),
        ("reasoning", json!({"effort": null, "summary": null})),
        ("service_tier", json!("default")),
    ] {
        assert_eq!(plain[member], value, "{member}");
    }
    let changes = json!({"instructions": "Be brief.", "metadata": {"a": "b"}, "temperature": 0.5,
        "tools": [{"type": "function", "name": "f", "parameters": null}], "service_tier": "auto",
        "reasoning": {"effort": "low"}, "parallel_tool_calls": false, "user": "u"});
    let answer = responses(&sim, &request("Hi", changes.clone()))
        .await
        .json();
    for member in [
        "instructions",
        "metadata",
        "temperature",
        "parallel_tool_calls",
        "user",
    ] {
        assert_eq!(answer[member], changes[member], "{member}");
    }
    assert_eq!(answer["tools"][0]["strict"], false);
    assert_eq!(
        answer["reasoning"],
        json!({"effort": "low", "summary": null})
    );
    assert!(answer["id"].as_str().unwrap().starts_with("resp_Sim"));
}

#[tokio::test]
async fn outputs_of_tools_may_hold_images() {
    const PIXEL: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let sim = start().await;
    let input = json!([
        {"role": "user", "content": [{"type": "input_text", "text": "What is the weather?"}]},
        {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": [
            {"type": "input_text", "text": "sunny"}, {"type": "input_image", "image_url": PIXEL}]},
    ]);
    let answer = responses(&sim, &request(input, json!({"tools": tools()})))
        .await
        .json();
    assert_eq!(
        answer["output"][0]["content"][0]["text"],
        "The get_weather result is sunny. I received one 1x1 PNG image of 70 bytes."
    );
}
