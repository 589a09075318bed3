//! Tests histories of Generate Content: calls, signatures and results.

use super::harness::{answered, asking, events, generate, result, stream, weather_tools};
use crate::client::{PIXEL, start, with};
use serde_json::{Value, json};

#[tokio::test]
async fn parallel_calls_are_signed_once_and_answered_together() {
    let sim = start().await;
    let request = with(
        asking("What are the weather and the time in Paris?"),
        json!({"tools": weather_tools()}),
    );
    let body = generate(&sim, "sim-chat", &request).await.json();
    let candidate = &body["candidates"][0];
    assert_eq!(candidate["finishReason"], "STOP");
    let parts = candidate["content"]["parts"].as_array().unwrap();
    let calls: Vec<_> = parts.iter().map(|part| &part["functionCall"]).collect();
    assert_eq!(calls.len(), 2);
    assert_eq!(
        (&calls[0]["name"], &calls[0]["args"]),
        (&json!("get_weather"), &json!({"city": "Paris"}))
    );
    assert!(parts[0]["thoughtSignature"].is_string());
    assert!(parts[1].get("thoughtSignature").is_none());
    assert_ne!(calls[0]["id"], calls[1]["id"]);

    let expected = "The get_weather result is 18 degrees. The get_time result is noon.";
    for results in [
        [
            result("get_weather", &calls[0]["id"], "18 degrees"),
            result("get_time", &calls[1]["id"], "noon"),
        ],
        // Without ids, results are matched by name.
        [
            result("get_weather", &Value::Null, "18 degrees"),
            result("get_time", &Value::Null, "noon"),
        ],
    ] {
        let next = answered(request.clone(), &candidate["content"], &results);
        let body = generate(&sim, "sim-chat", &next).await.json();
        let text = &body["candidates"][0]["content"]["parts"][0]["text"];
        assert_eq!(text, expected);
    }

    let streamed = events(&stream(&sim, "sim-chat", &request).await);
    assert_eq!(streamed.len(), 3, "a call each, and the end");
    let mut history = request.clone();
    for event in &streamed {
        // Clients send back one content item for each event.
        let content = event["candidates"][0]["content"].clone();
        history["contents"].as_array_mut().unwrap().push(content);
    }
    history["contents"]
        .as_array_mut()
        .unwrap()
        .push(json!({"parts": [
        result("get_weather", &Value::Null, "18 degrees"),
        result("get_time", &Value::Null, "noon")]}));
    let body = generate(&sim, "sim-chat", &history).await.json();
    assert_eq!(
        body["candidates"][0]["content"]["parts"][0]["text"],
        expected
    );
}

#[tokio::test]
async fn signatures_of_open_calls_must_come_back_unaltered() {
    let sim = start().await;
    let request = with(
        asking("The weather in Paris"),
        json!({"tools": weather_tools()}),
    );
    let body = generate(&sim, "sim-chat", &request).await.json();
    let content = &body["candidates"][0]["content"];
    let signature = content["parts"][0]["thoughtSignature"].as_str().unwrap();
    let url_safe = signature.replace('+', "-").replace('/', "_");
    let altered = signature.replacen("++", "+A", 1);
    let result =
        [json!({"function_response": {"name": "get_weather", "response": {"result": "ok"}}})];
    for (model, signature, status, part) in [
        ("sim-chat", json!(signature), 200, "ok"),
        ("sim-chat", json!(url_safe), 200, "ok"),
        (
            "sim-chat",
            json!("skip_thought_signature_validator"),
            200,
            "ok",
        ),
        ("sim-chat", Value::Null, 400, "missing a thought_signature"),
        (
            "sim-chat",
            json!(altered),
            400,
            "Corrupted thought signature.",
        ),
        (
            "sim-mini",
            json!(signature),
            400,
            "Corrupted thought signature.",
        ),
        ("sim-chat+unsigned", Value::Null, 200, "ok"),
        ("sim-chat+unsigned", json!("c2ln"), 200, "ok"),
    ] {
        let mut content = content.clone();
        content["parts"][0]["thoughtSignature"] = signature.clone();
        let next = answered(request.clone(), &content, &result);
        let answer = generate(&sim, model, &next).await;
        assert_eq!(answer.status, status, "{model} {signature}");
        assert!(answer.text().contains(part), "{}", answer.text());
        let streamed = stream(&sim, model, &next).await;
        assert_eq!(streamed.status, status, "{model} {signature}");
    }

    // In earlier turns a signature may be missing, but not altered.
    for (signature, status) in [(Value::Null, 200), (json!(altered), 400)] {
        let mut content = content.clone();
        content["parts"][0]["thoughtSignature"] = signature;
        let mut next = answered(request.clone(), &content, &result);
        next["contents"]
            .as_array_mut()
            .unwrap()
            .push(json!({"role": "user", "parts": [{"text": "hi"}]}));
        assert_eq!(generate(&sim, "sim-chat", &next).await.status, status);
    }
    // The signature is bound to its call.
    let mut moved = content.clone();
    moved["parts"][0]["functionCall"]["name"] = json!("get_time");
    let result = [json!({"functionResponse": {"name": "get_time", "response": {}}})];
    let next = answered(request, &moved, &result);
    assert_eq!(generate(&sim, "sim-chat", &next).await.status, 400);
}

#[tokio::test]
async fn every_step_of_a_loop_is_signed() {
    let sim = start().await;
    let mut request = with(
        asking("First the weather, then the time in Rome"),
        json!({"tools": weather_tools()}),
    );
    let mut names = Vec::new();
    for _ in 0..2 {
        let body = generate(&sim, "sim-reason", &request).await.json();
        let content = body["candidates"][0]["content"].clone();
        let name = content["parts"][0]["functionCall"]["name"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(content["parts"][0]["thoughtSignature"].is_string());
        let id = content["parts"][0]["functionCall"]["id"].clone();
        request = answered(request, &content, &[result(&name, &id, "fine")]);
        names.push(name);
    }
    assert_eq!(names, ["get_weather", "get_time"]);
    assert_eq!(generate(&sim, "sim-reason", &request).await.status, 200);
    // The signature of the first step is still required.
    request["contents"][1]["parts"][0]["thoughtSignature"] = Value::Null;
    assert_eq!(generate(&sim, "sim-reason", &request).await.status, 400);
}

#[tokio::test]
async fn results_may_hold_pictures_and_failures() {
    let sim = start().await;
    let request = with(
        asking("The weather in Paris"),
        json!({"tools": weather_tools()}),
    );
    let body = generate(&sim, "sim-chat+no-call-ids", &request)
        .await
        .json();
    let content = &body["candidates"][0]["content"];
    assert!(content["parts"][0]["functionCall"].get("id").is_none());
    for (response, part) in [
        (
            json!({"name": "get_weather", "response": {"output": "see"},
                "parts": [{"inline_data": {"mime_type": "image/png", "data": PIXEL}}]}),
            "result is see. I received one 1x1 PNG image",
        ),
        (
            json!({"name": "get_weather", "response": {"error": "no such city"}}),
            "call failed: no such city",
        ),
        (
            json!({"name": "get_weather", "response": {"sky": "blue"}}),
            "result is {\"sky\":\"blue\"}",
        ),
    ] {
        let next = answered(
            request.clone(),
            content,
            &[json!({"functionResponse": response})],
        );
        let body = generate(&sim, "sim-chat", &next).await.json();
        let text = body["candidates"][0]["content"]["parts"][0]["text"]
            .as_str()
            .unwrap();
        assert!(text.contains(part), "{text}");
    }
}
