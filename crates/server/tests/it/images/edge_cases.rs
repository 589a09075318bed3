//! Edge cases of the images endpoints: tools, streamed edits, URLs in forms, refusals in streams.

use serde_json::{Value, json};

use crate::harness::pictures::form;
use crate::harness::{CANNED_MODEL, CannedUpstream, GatewayBuilder, Key, Request, with};

const CONTENT: &str = r#"{ base = "content-image" }"#;

fn generation(key: &Key, more: &Value) -> Request {
    let body = json!({ "model": CANNED_MODEL, "prompt": "a cat" });
    let body = with(body, more);
    Request::post("/v1/images/generations")
        .bearer(&key.secret)
        .json(&body)
}

/// An edit request as a form without files.
fn edit(key: &Key, fields: &[(&str, &str)]) -> Request {
    let (content_type, body) = form(fields, &[]);
    Request::post("/v1/images/edits")
        .header("content-type", &content_type)
        .bearer(&key.secret)
        .body(body)
}

#[tokio::test]
async fn searches_beside_a_picture_are_billed_or_refused() {
    let answer = r#"{"data":[{"url":"https://a"}],"usage":{"generated_images":1,"output_tokens":9,"total_tokens":9,"tool_usage":{"web_search":3}}}"#;
    let tools = json!({ "tools": [{ "type": "web_search" }] });
    for (price, refuses, charge) in [
        (
            r#"{ image = "0.04", tools = { web_search = "0.01" } }"#,
            true,
            Some(70_000),
        ),
        (r#"{ image = "0.04" }"#, false, Some(40_000)),
        (r#"{ image = "0.04" }"#, true, None),
    ] {
        let canned = CannedUpstream::json(answer).await;
        let entries = canned.entries_of("image", price, CONTENT);
        let refuse = format!("refuse_unpriced_tools = {refuses}");
        let builder = GatewayBuilder::default()
            .entries(&entries)
            .setting("ledger", &refuse);
        let (gateway, key) = builder.funded().await;
        let answer = gateway.send(&generation(&key, &tools)).await;
        assert_eq!(answer.status() == 200, charge.is_some(), "{price}");
        if charge.is_none() {
            let error = &answer.json()["error"];
            assert_eq!(error["param"], "tools");
        }
        assert_eq!(gateway.usage(&key).await, charge.unwrap_or(0), "{price}");
        gateway.verify().await;
    }
}

#[tokio::test]
async fn a_streamed_edit_by_form_is_one_to_the_end() {
    let stream = concat!(
        "event: image_generation.partial_succeeded\ndata: {\"type\":\"image_generation.partial_succeeded\",\"image_index\":0,\"url\":\"https://b\"}\n\n",
        "event: image_generation.completed\ndata: {\"type\":\"image_generation.completed\",\"usage\":{\"generated_images\":1,\"output_tokens\":4,\"total_tokens\":4}}\n\n",
        "data: [DONE]\n\n",
    );
    for truth in ["1", "True"] {
        let canned = CannedUpstream::stream(stream).await;
        let entries = canned.entries_of("image", r#"{ image = "0.04" }"#, CONTENT);
        let (gateway, key) = GatewayBuilder::default().entries(&entries).funded().await;
        let request = edit(
            &key,
            &[
                ("model", CANNED_MODEL),
                ("prompt", "a cat"),
                ("image", "https://a.example/cat.png"),
                ("stream", truth),
            ],
        );
        let answer = gateway.send(&request).await.ok();
        assert_eq!(answer.header("content-type"), Some("text/event-stream"));
        let text = answer.text();
        assert!(!text.contains("image_generation"), "{text}");
        assert!(text.contains("event: image_edit.completed\n"), "{text}");
        let sent: Value = serde_json::from_slice(&canned.bodies()[0]).unwrap();
        assert_eq!(sent["image"], "https://a.example/cat.png");
        assert_eq!(sent["stream"], true);
        assert_eq!(gateway.usage(&key).await, 40_000);
    }
}

#[tokio::test]
async fn a_refusal_in_a_stream_keeps_its_kind() {
    let preview = "event: image_generation.partial_image\ndata: {\"type\":\"image_generation.partial_image\",\"b64_json\":\"QQ==\",\"partial_image_index\":0}\n\n";
    let refusal = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"image_generation_user_error\",\"code\":\"moderation_blocked\",\"message\":\"Rejected by the safety system of api.vendor.example.\"}}\n\n";
    let price = r#"{ input = "5", image_output = "30" }"#;
    let profile = r#"{ base = "gpt-image", image_tokens_max = 100 }"#;
    for (stream, status) in [
        (refusal.to_owned(), 400),
        (format!("{preview}{refusal}"), 200),
    ] {
        let canned = CannedUpstream::stream(&stream).await;
        let entries = canned.entries_of("image", price, profile);
        let (gateway, key) = GatewayBuilder::default().entries(&entries).funded().await;
        let answer = gateway
            .send(&generation(&key, &json!({ "stream": true })))
            .await;
        assert_eq!(answer.status(), status);
        let text = answer.text();
        assert!(
            text.contains("The model's content policy refused this request."),
            "{text}"
        );
        assert!(text.contains(r#""type":"invalid_request_error""#), "{text}");
        assert!(!text.contains("vendor"), "{text}");
    }
}
