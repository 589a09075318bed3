//! Tests answers and streams of Interactions.

use super::harness::{asking, events, folded, interact, stream, tools, user};
use crate::client::{PIXEL, start, with};
use serde_json::{Value, json};

#[tokio::test]
async fn an_answer_has_everything_the_vendor_sends() {
    let sim = start().await;
    let mut body = interact(&sim, &asking("sim-chat", "say exactly: Hello, world!"))
        .await
        .json();
    assert!(body["id"].as_str().unwrap().starts_with("v1_"));
    assert!(body["created"].as_str().unwrap().ends_with('Z'));
    assert!(body["steps"][0]["signature"].as_str().unwrap().len() > 100);
    body["steps"][0]["signature"] = Value::Null;
    for name in ["id", "created", "updated"] {
        body[name] = Value::Null;
    }
    assert_eq!(
        body,
        json!({
            "id": null, "object": "interaction", "model": "sim-chat-2026-01-01",
            "status": "completed", "created": null, "updated": null, "service_tier": "standard",
            "steps": [{"type": "thought", "signature": null},
                {"type": "model_output", "content": [{"type": "text", "text": "Hello, world!"}]}],
            "usage": {"total_tokens": 19, "total_input_tokens": 15,
                "input_tokens_by_modality": [{"modality": "text", "tokens": 15}],
                "total_cached_tokens": 0, "total_output_tokens": 4, "total_tool_use_tokens": 0,
                "total_thought_tokens": 0}
        })
    );
    let unstored = with(asking("sim-chat", "hi"), json!({"store": false}));
    assert_eq!(interact(&sim, &unstored).await.json()["id"], "");
}

#[tokio::test]
async fn a_stream_is_as_the_vendor_sends_it() {
    let sim = start().await;
    let answer = stream(&sim, &asking("sim-chat", "say exactly: Hello, world!")).await;
    assert_eq!(
        answer.header("content-type"),
        Some("text/event-stream; charset=utf-8")
    );
    assert!(answer.text().ends_with("event: done\ndata: [DONE]\n\n"));
    let events = events(&answer);
    let names: Vec<_> = events
        .iter()
        .map(|event| event["event_type"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "interaction.created",
            "interaction.status_update",
            "step.start",
            "step.delta",
            "step.stop",
            "step.start",
            "step.delta",
            "step.delta",
            "step.delta",
            "step.delta",
            "step.stop",
            "interaction.completed",
        ]
    );
    assert_eq!(events[0]["interaction"]["status"], "in_progress");
    assert_eq!(events[1]["interaction_id"], events[0]["interaction"]["id"]);
    assert_eq!(
        events[6],
        json!({"event_type": "step.delta", "index": 1, "delta": {"type": "text", "text": "Hello"}})
    );
    let completed = &events[11]["interaction"];
    assert_eq!(completed["status"], "completed");
    assert_eq!(completed["usage"]["total_tokens"], 19);
    assert!(completed.get("steps").is_none());
}

#[tokio::test]
async fn pages_are_cited_by_bytes() {
    let sim = start().await;
    let request = asking("sim-chat", "say exactly: Grüße, cite https://a.example/b");
    let body = interact(&sim, &request).await.json();
    let content = &body["steps"][1]["content"][0];
    let bytes = content["text"].as_str().unwrap().len();
    assert_eq!(
        content["annotations"],
        json!([{"type": "url_citation", "url": "https://a.example/b",
            "title": "A page of a.example", "start_index": 0, "end_index": bytes}])
    );
    let (steps, _) = folded(&events(&stream(&sim, &request).await));
    assert_eq!(steps[1]["annotations"], content["annotations"]);
}

#[tokio::test]
async fn inputs_come_in_many_forms() {
    let sim = start().await;
    let text = json!({"type": "text", "text": "say exactly: yes"});
    let image = json!({"type": "image", "data": PIXEL, "mime_type": "image/png"});
    let linked = json!({"type": "image", "uri": "https://example.com/a.png"});
    for (input, part) in [
        (json!("say exactly: yes"), "yes"),
        (text.clone(), "yes"),
        (json!([text]), "yes"),
        (json!([user("say exactly: yes")]), "yes"),
        (
            json!([image, {"type": "text", "text": "what?"}]),
            "one 1x1 PNG image of 70 bytes",
        ),
        (
            json!([{"type": "user_input", "content": [image]}]),
            "one 1x1 PNG image of 70 bytes",
        ),
        (json!([linked]), "one image at https://example.com/a.png"),
        (
            json!([user("My name is Ada."), {"type": "model_output", "content": [{"type": "text", "text": "Hi"}]},
                {"type": "text", "text": "What is my name?"}]),
            "Your name is Ada.",
        ),
    ] {
        let body = interact(&sim, &json!({"model": "sim-chat", "input": input}))
            .await
            .json();
        let text = body["steps"][1]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(part), "{input}: {text}");
    }
}

#[tokio::test]
async fn parameters_are_honoured() {
    let sim = start().await;
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    for (members, pointer, expected) in [
        (
            json!({"generation_config": {"max_output_tokens": 2}}),
            "/steps/1/content/0/text",
            json!("1,"),
        ),
        (
            json!({"generation_config": {"max_output_tokens": 2}}),
            "/status",
            json!("incomplete"),
        ),
        (
            json!({"generation_config": {"stop_sequences": [", 3"]}}),
            "/steps/1/content/0/text",
            json!("1, 2"),
        ),
        (
            json!({"response_format": {"type": "text", "mime_type": "application/json", "schema": schema}}),
            "/steps/1/content/0/text",
            json!("{\"n\":3}"),
        ),
        (
            json!({"tools": tools(), "generation_config": {"tool_choice": "any"}}),
            "/steps/1/name",
            json!("get_weather"),
        ),
        (
            json!({"tools": tools(), "generation_config":
                {"tool_choice": {"allowed_tools": {"mode": "any", "tools": ["get_time"]}}}}),
            "/steps/1/name",
            json!("get_time"),
        ),
        (
            json!({"response_format": [{"type": "image", "image_size": "4K"}]}),
            "/usage/output_tokens_by_modality/0/tokens",
            json!(2520),
        ),
        (
            json!({"model": "sim-image"}),
            "/steps/1/content/1/mime_type",
            json!("image/png"),
        ),
    ] {
        let request = with(asking("sim-chat", "Count to 3"), members.clone());
        let body = interact(&sim, &request).await.json();
        assert_eq!(body.pointer(pointer), Some(&expected), "{members} {body}");
        let (steps, completed) = folded(&events(&stream(&sim, &request).await));
        assert_eq!(completed["usage"], body["usage"], "{members}");
        assert_eq!(completed["status"], body["status"], "{members}");
        assert_eq!(
            steps.len(),
            body["steps"].as_array().unwrap().len(),
            "{members}"
        );
    }
}

#[tokio::test]
async fn a_continuation_gives_the_rest() {
    let sim = start().await;
    let request = asking("sim-chat+continuation", "Count to 6");
    let first = interact(&sim, &request).await.json();
    assert_eq!(first["status"], "requires_continuation");
    let (_, completed) = folded(&events(&stream(&sim, &request).await));
    assert_eq!(completed["continuation_token"], first["continuation_token"]);
    let next = with(
        request.clone(),
        json!({"continuation_token": first["continuation_token"]}),
    );
    let second = interact(&sim, &next).await.json();
    assert_eq!(second["status"], "completed");
    let text = |body: &Value| {
        body["steps"][1]["content"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(text(&first) + &text(&second), "1, 2, 3, 4, 5, 6");
    let wrong = with(request, json!({"continuation_token": "AAAA"}));
    assert_eq!(interact(&sim, &wrong).await.status, 400);
}
