//! Usage reports beyond what a model can produce: the gateway bills the call by its own count, and later calls of the
//! wallet are booked exactly.

use serde_json::{Value, json};

use crate::harness::{
    CANNED_MODEL, CannedUpstream, GatewayBuilder, Key, Request, ask, expected_cost, with,
};

/// Half of the largest amount in micro-credits. At two credits per million, this many tokens cost the largest amount.
const HALF: u64 = u64::MAX / 4;

const TEXT: &str = r#"{ input = "2", output = "2" }"#;
const PROFILE: &str = "{ context_tokens = 400000, max_output_tokens = 128000 }";

struct Case {
    name: &'static str,
    upstream: String,
    is_stream: bool,
    entries: [&'static str; 3],
    request: fn(&Key) -> Request,
    charge_max: u64,
}

fn chat(key: &Key, more: &Value) -> Request {
    let body = with(ask("hello"), &json!({ "model": CANNED_MODEL }));
    Request::chat(&with(body, more)).bearer(&key.secret)
}

#[expect(clippy::too_many_lines, reason = "a table")]
fn cases() -> Vec<Case> {
    let answer = format!(
        r#"{{"choices":[{{"index":0,"message":{{"role":"assistant","content":"done"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":0,"completion_tokens":{HALF},"total_tokens":{HALF}}}}}"#
    );
    // This report could be booked, but it is more than the model can produce. So the gateway bills its own count.
    let tenfold = answer.replace(&HALF.to_string(), "10000000");
    let searching = tenfold.replace(
        r#""usage":{"#,
        r#""usage":{"server_tool_use":{"web_search_requests":10000},"#,
    );
    let chunk = r#"{"choices":[{"index":0,"delta":{"content":"done"},"finish_reason":"stop"}]}"#;
    let usage = format!(
        r#"{{"choices":[],"usage":{{"prompt_tokens":0,"completion_tokens":{HALF},"total_tokens":{HALF}}}}}"#
    );
    let vectors = format!(
        r#"{{"object":"list","data":[{{"index":0,"embedding":[1.0]}}],"model":"x","usage":{{"prompt_tokens":{HALF},"total_tokens":{HALF}}}}}"#
    );
    let pictures = format!(
        r#"{{"created":5,"data":[{{"b64_json":"QUJD"}}],"usage":{{"input_tokens":0,"output_tokens":{HALF},"total_tokens":{HALF}}}}}"#
    );
    let heard = format!(r#"{{"text":"Hi","duration":{}}}"#, HALF / 2);
    vec![
        Case {
            name: "native",
            upstream: answer.clone(),
            is_stream: false,
            entries: ["text", TEXT, PROFILE],
            request: |key| chat(key, &json!({})),
            charge_max: 100,
        },
        Case {
            name: "searches that were not offered",
            upstream: searching,
            is_stream: false,
            entries: ["text", TEXT, PROFILE],
            request: |key| chat(key, &json!({})),
            charge_max: 100,
        },
        Case {
            name: "ten times the model",
            upstream: tenfold,
            is_stream: false,
            entries: ["text", r#"{ input = "0", output = "2" }"#, PROFILE],
            request: |key| chat(key, &json!({})),
            charge_max: 100,
        },
        Case {
            name: "native stream",
            upstream: format!("data: {chunk}\n\ndata: {usage}\n\ndata: [DONE]\n\n"),
            is_stream: true,
            entries: ["text", TEXT, PROFILE],
            request: |key| chat(key, &json!({ "stream": true })),
            charge_max: 100,
        },
        Case {
            name: "converted",
            upstream: answer,
            is_stream: false,
            entries: ["text", TEXT, PROFILE],
            request: |key| {
                let body = json!({ "model": CANNED_MODEL, "max_tokens": 50,
                    "messages": [{ "role": "user", "content": "hello" }] });
                Request::post("/v1/messages")
                    .header("x-api-key", &key.secret)
                    .header("anthropic-version", "2023-06-01")
                    .json(&body)
            },
            charge_max: 100,
        },
        Case {
            name: "embeddings",
            upstream: vectors,
            is_stream: false,
            entries: [
                "embedding",
                r#"{ input = "2" }"#,
                "{ context_tokens = 8192 }",
            ],
            request: |key| {
                let body = json!({ "model": CANNED_MODEL, "input": "hello" });
                Request::post("/v1/embeddings")
                    .bearer(&key.secret)
                    .json(&body)
            },
            charge_max: 100,
        },
        Case {
            name: "pictures",
            upstream: pictures,
            is_stream: false,
            entries: [
                "image",
                r#"{ input = "2", output = "2", image_output = "2" }"#,
                r#"{ base = "gpt-image", image_tokens_max = 1000 }"#,
            ],
            request: |key| {
                let body = json!({ "model": CANNED_MODEL, "prompt": "x" });
                Request::post("/v1/images/generations")
                    .bearer(&key.secret)
                    .json(&body)
            },
            charge_max: 2_100,
        },
        Case {
            name: "transcript",
            upstream: heard,
            is_stream: false,
            entries: ["audio", r#"{ stt_second = "0.000004" }"#, "{}"],
            request: |key| {
                let part = |name: &str, value: &str| {
                    format!(
                        "--b0\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
                    )
                };
                let body =
                    part("model", CANNED_MODEL) + &part("url", "https://audio.example/a.mp3");
                Request::post("/v1/stt")
                    .header("content-type", "multipart/form-data; boundary=b0")
                    .bearer(&key.secret)
                    .body(body + "--b0--\r\n")
            },
            charge_max: 86_400,
        },
    ]
}

#[tokio::test]
async fn a_wallet_with_an_absurd_report_books_its_next_calls_exactly() {
    for case in cases() {
        let name = case.name;
        let canned = if case.is_stream {
            CannedUpstream::stream(&case.upstream).await
        } else {
            CannedUpstream::json(&case.upstream).await
        };
        let [kind, price, profile] = case.entries;
        let mut entries = canned.entries_of(kind, price, profile);
        if name == "converted" {
            entries = entries.replace(
                "preset = \"sim\"",
                "preset = \"sim\"\nprotocols = [\"chat\"]",
            );
        }
        let (gateway, key) = GatewayBuilder::default().entries(&entries).funded().await;
        gateway.send(&(case.request)(&key)).await.ok();
        let counted = gateway.usage(&key).await;
        assert!(
            counted > 0 && counted <= case.charge_max,
            "{name}: {counted}"
        );
        let alarmed = |line: &str| line.contains("beyond what the model can do");
        gateway.logged("the alarm", alarmed).await;
        let metrics = gateway.admin_get("/metrics").await.ok();
        let metric = "tollgate_usage_malformed_total 1";
        assert!(
            metrics.text().contains(metric),
            "{name}: {}",
            metrics.text()
        );
        assert!(
            metrics
                .text()
                .contains("tollgate_charges_unbookable_total 0"),
            "{name}"
        );

        let answer = gateway.chat(&key, &ask("count to 5")).await.ok().json();
        let next = expected_cost(&answer["usage"]);
        assert_eq!(gateway.usage(&key).await, counted + next, "{name}");
        gateway.verify().await;
    }
}

/// A model reads its context again with the result of each tool, so a long run of tools reports more than its context.
#[tokio::test]
async fn a_long_run_of_tools_is_charged_by_its_report() {
    for (searches, charge) in [(12, 2_000_010 * 2), (0, 100)] {
        let answer = json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "x",
            "content": [{ "type": "text", "text": "done" }], "stop_reason": "end_turn", "stop_sequence": null,
            "usage": { "input_tokens": 2_000_000, "output_tokens": 10,
                "server_tool_use": { "web_search_requests": searches } } });
        let canned = CannedUpstream::json(&answer.to_string()).await;
        let profile = "{ context_tokens = 200000, max_output_tokens = 64000 }";
        let entries = canned.entries_of("text", TEXT, profile);
        let (gateway, key) = GatewayBuilder::default().entries(&entries).funded().await;
        let body = json!({ "model": CANNED_MODEL, "max_tokens": 50,
            "tools": [{ "type": "web_search_20250305", "name": "web_search" }],
            "messages": [{ "role": "user", "content": "hello" }] });
        let request = Request::post("/v1/messages")
            .header("x-api-key", &key.secret)
            .header("anthropic-version", "2023-06-01")
            .json(&body);
        gateway.send(&request).await.ok();
        let charged = gateway.usage(&key).await;
        let is_reported = charged == charge;
        assert!(
            is_reported || searches == 0 && charged <= charge,
            "{searches}: {charged}"
        );
        gateway.verify().await;
    }
}
