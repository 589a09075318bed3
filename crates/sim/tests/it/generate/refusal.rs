//! Tests refusals and faults of Generate Content.

use super::harness::{asking, events, generate, joined, stream};
use crate::client::{PIXEL, call, start};
use serde_json::json;

#[tokio::test]
async fn wrong_histories_are_refused() {
    let sim = start().await;
    let user = |text: &str| json!({"role": "user", "parts": [{"text": text}]});
    let skip = "skip_thought_signature_validator";
    let called = json!({"role": "model", "parts": [
        {"functionCall": {"name": "f", "args": {}, "id": "c1"}, "thoughtSignature": skip}]});
    let response = |name: &str, id: &str| json!({"role": "user", "parts": [{"functionResponse": {"name": name, "id": id, "response": {}}}]});
    for (contents, part) in [
        (json!([]), "contents is not specified"),
        (json!([{"role": "user", "parts": []}]), "must not be empty"),
        (
            json!([{"role": "king", "parts": [{"text": "x"}]}]),
            "valid role",
        ),
        (
            json!([{"role": "model", "parts": [{"text": "x"}]}]),
            "single turn requests",
        ),
        (json!([{"parts": [{}]}]), "required oneof field 'data'"),
        (
            json!([{"parts": [{"text": "x", "inlineData": {"mimeType": "image/png", "data": PIXEL}}]}]),
            "oneof field 'data' is already set",
        ),
        (
            json!([{"parts": [{"type": "text", "text": "x"}]}]),
            "Unknown name \"type\"",
        ),
        (
            json!([{"parts": [{"inlineData": {"mimeType": "image/png", "data": "***"}}]}]),
            "Base64 decoding failed",
        ),
        (
            json!([{"parts": [{"fileData": {"fileUri": "ftp://x"}}]}]),
            "Unsupported file uri",
        ),
        (
            json!([user("x"), called]),
            "number of function response parts",
        ),
        (
            json!([user("x"), called, user("y")]),
            "number of function response parts",
        ),
        (
            json!([user("x"), response("f", "c1")]),
            "function response turn comes",
        ),
        (
            json!([user("x"), called, response("f", "c2")]),
            "does not match any function call",
        ),
        (
            json!([user("x"), called, response("g", "c1")]),
            "is named 'g'",
        ),
        (
            json!([user("x"), called, {"parts": [{"functionResponse": {"name": "f", "response": "ok"}}]}]),
            "google.protobuf.Struct",
        ),
    ] {
        let answer = generate(&sim, "sim-chat", &json!({"contents": contents})).await;
        assert_eq!(answer.status, 400, "{contents}");
        let error = &answer.json()["error"];
        assert_eq!(
            (&error["code"], &error["status"]),
            (&json!(400), &json!("INVALID_ARGUMENT"))
        );
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(part), "{message}");
    }
}

#[tokio::test]
async fn keys_paths_and_models_are_checked() {
    let sim = start().await;
    let body = asking("hi").to_string();
    let path = "/v1beta/models/sim-chat:generateContent";
    for (path, head, status, label) in [
        (path, "", 403, "PERMISSION_DENIED"),
        (
            path,
            "x-goog-api-key: sim-bad-key\r\n",
            400,
            "INVALID_ARGUMENT",
        ),
        (
            path,
            "authorization: Bearer sim-poor-key\r\n",
            429,
            "RESOURCE_EXHAUSTED",
        ),
        ("/v1beta/models/sim-chat:nothing", "", 404, "NOT_FOUND"),
        ("/v1beta/nothing", "", 404, "NOT_FOUND"),
    ] {
        let answer = call(&sim, "POST", path, head, body.as_bytes()).await;
        assert_eq!(
            (answer.status, &answer.json()["error"]["status"]),
            (status, &json!(label)),
            "{path} {head}"
        );
    }
    for path in [
        "/v1/models/maker/sim-chat:generateContent?key=k",
        "/v1beta/models/maker%2Fsim-chat:generateContent?key=k",
    ] {
        let answer = call(&sim, "POST", path, "", body.as_bytes()).await;
        assert_eq!(answer.json()["modelVersion"], "maker/sim-chat-2026-01-01");
        let calls = sim.calls();
        assert_eq!(
            calls.last().unwrap().model.as_deref(),
            Some("maker/sim-chat")
        );
    }
    assert_eq!(generate(&sim, "missing-x", &asking("hi")).await.status, 404);
    assert_eq!(call(&sim, "GET", path, "", b"").await.status, 405);
    let unread = call(&sim, "POST", path, "x-goog-api-key: k\r\n", b"{").await;
    assert_eq!(unread.status, 400);
}

#[tokio::test]
async fn scripts_bend_answers_and_streams() {
    let sim = start().await;
    let request = asking("Count to 20");
    let faulty = |faults: &str| format!("sim-chat+{faults}");
    let answer = generate(&sim, &faulty("status=429:retry-after=7"), &request).await;
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (429, Some("7"))
    );
    assert_eq!(answer.json()["error"]["details"][0]["retryDelay"], "7s");
    for status in [400, 401, 402, 403, 404, 413, 500, 502, 503, 504] {
        let answer = stream(&sim, &faulty(&format!("status={status}")), &request).await;
        assert_eq!(answer.status, status);
        assert_eq!(answer.json()["error"]["code"], status);
    }
    let answer = generate(&sim, &faulty("error-in-200"), &request).await;
    assert_eq!(
        (answer.status, &answer.json()["error"]["code"]),
        (200, &json!(500))
    );
    let shown = events(&stream(&sim, &faulty("error-in-200"), &request).await);
    assert_eq!(shown[0]["error"]["status"], "INTERNAL");
    assert_eq!(
        generate(&sim, &faulty("empty-object"), &request)
            .await
            .text(),
        "{}"
    );
    assert_eq!(
        stream(&sim, &faulty("empty-object"), &request).await.text(),
        "data: {}\r\n\r\n"
    );
    assert!(
        stream(&sim, &faulty("wrong-type=swapped"), &request)
            .await
            .json()["candidates"]
            .is_array()
    );
    assert!(events(&generate(&sim, &faulty("wrong-type=swapped"), &request).await).len() > 3);

    let shown = events(&stream(&sim, &faulty("error-event=3"), &request).await);
    assert_eq!((shown.len(), &shown[3]["error"]["code"]), (4, &json!(500)));
    let shown = events(&stream(&sim, &faulty("garbage-event=2"), &request).await);
    assert!(shown[2].is_string() && shown.last().unwrap().is_object());
    let answer = stream(&sim, &faulty("no-finish"), &request).await;
    assert!(!answer.text().contains("finishReason"));
    assert_eq!(
        joined(&events(&answer), false),
        joined(&events(&stream(&sim, "sim-chat", &request).await), false)
    );

    for (faults, total) in [
        ("usage=zero", json!(0)),
        ("usage=negative", json!(-5)),
        ("usage=string", json!("49")),
        ("tool-use=7", json!(56)),
    ] {
        let whole = generate(&sim, &faulty(faults), &request).await.json();
        assert_eq!(whole["usageMetadata"]["totalTokenCount"], total, "{faults}");
        let shown = events(&stream(&sim, &faulty(faults), &request).await);
        let last = &shown.last().unwrap()["usageMetadata"];
        assert_eq!(last["totalTokenCount"], total, "{faults}");
    }
    for faults in ["no-usage", "usage=on-finish"] {
        let shown = events(&stream(&sim, &faulty(faults), &request).await);
        let with_usage = shown
            .iter()
            .filter(|event| event.get("usageMetadata").is_some());
        assert_eq!(with_usage.count(), usize::from(faults == "usage=on-finish"));
    }
    let whole = generate(&sim, &faulty("cached=4"), &request).await.json();
    assert_eq!(whole["usageMetadata"]["cachedContentTokenCount"], 4);
    let answer = stream(&sim, &faulty("cut=100"), &request).await;
    assert_eq!(answer.body.len(), 100);
    let shown = events(&stream(&sim, &faulty("chunks=100+pieces=64"), &request).await);
    assert_eq!(shown.len(), 101);
    let wrong = generate(&sim, &faulty("nonsense"), &request).await;
    assert!(wrong.status == 400 && wrong.text().contains("script is wrong:"));
}
