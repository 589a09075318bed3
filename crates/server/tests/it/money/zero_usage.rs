//! An upstream that delivers output but reports zero usage is treated as if it sent no report: the charge is the same.

use serde_json::json;

use crate::harness::{CANNED_MODEL, CannedUpstream, GatewayBuilder, Key, Request};

struct Case {
    name: &'static str,
    /// The upstream's answer, with the placeholder `REPORT` in place of its usage.
    upstream: &'static str,
    is_stream: bool,
    zeros: &'static str,
    /// Channel protocols, if they differ from the preset's.
    protocols: Option<&'static str>,
    entries: [&'static str; 3],
    request: fn(&Key) -> Request,
}

const TEXT: [&str; 3] = [
    "text",
    r#"{ input = "2", output = "20" }"#,
    "{ context_tokens = 400000, max_output_tokens = 128000 }",
];
const NATIVE_IMAGE: [&str; 3] = [
    "image",
    r#"{ input = "2", output = "20", image_output = "30" }"#,
    r#"{ base = "native-image", image_tokens_max = 1000, context_tokens = 400000 }"#,
];
const GPT_IMAGE: [&str; 3] = [
    "image",
    r#"{ input = "2", output = "2", image_output = "30" }"#,
    r#"{ base = "gpt-image", image_tokens_max = 1000 }"#,
];
const GENERATE_ZEROS: &str =
    r#""usageMetadata":{"promptTokenCount":0,"candidatesTokenCount":0,"totalTokenCount":0}"#;
const IMAGE_ZEROS: &str = r#""usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0}"#;
const CHAT_ZEROS: &str = r#""usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}"#;

fn generate(key: &Key, method: &str) -> Request {
    let body = json!({ "contents": [{ "role": "user", "parts": [{ "text": "hello" }] }] });
    Request::post(&format!("/v1beta/models/{CANNED_MODEL}:{method}"))
        .header("x-goog-api-key", &key.secret)
        .json(&body)
}

fn post(key: &Key, path: &str, body: &serde_json::Value) -> Request {
    Request::post(path).bearer(&key.secret).json(body)
}

#[expect(clippy::too_many_lines, reason = "a table")]
fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "streamGenerateContent",
            upstream: "data: {\"candidates\":[{\"index\":0,\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"Four words of text\"}]},\"finishReason\":\"STOP\"}],REPORT}\n\n",
            is_stream: true,
            zeros: GENERATE_ZEROS,
            protocols: Some(r#"["generate"]"#),
            entries: TEXT,
            request: |key| generate(key, "streamGenerateContent?alt=sse"),
        },
        Case {
            name: "pictures through generateContent",
            upstream: r#"{"candidates":[{"index":0,"content":{"role":"model","parts":[{"inlineData":{"mimeType":"image/png","data":"QUJD"}}]},"finishReason":"STOP"}],REPORT}"#,
            is_stream: false,
            zeros: GENERATE_ZEROS,
            protocols: Some(r#"["generate"]"#),
            entries: NATIVE_IMAGE,
            request: |key| generate(key, "generateContent"),
        },
        Case {
            name: "converted chat",
            upstream: r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"Four words of text"},"finish_reason":"stop"}],REPORT}"#,
            is_stream: false,
            zeros: CHAT_ZEROS,
            protocols: Some(r#"["chat"]"#),
            entries: TEXT,
            request: |key| generate(key, "generateContent"),
        },
        Case {
            name: "a stream of chat",
            upstream: "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Four words of text\"},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],REPORT}\n\ndata: [DONE]\n\n",
            is_stream: true,
            zeros: CHAT_ZEROS,
            protocols: Some(r#"["chat"]"#),
            entries: TEXT,
            request: |key| {
                let body = json!({ "model": CANNED_MODEL, "stream": true,
                    "messages": [{ "role": "user", "content": "hello" }] });
                post(key, "/v1/chat/completions", &body)
            },
        },
        Case {
            name: "pictures",
            upstream: r#"{"created":5,"data":[{"b64_json":"QUJD"}],REPORT}"#,
            is_stream: false,
            zeros: IMAGE_ZEROS,
            protocols: None,
            entries: GPT_IMAGE,
            request: |key| {
                let body = json!({ "model": CANNED_MODEL, "prompt": "a cat" });
                post(key, "/v1/images/generations", &body)
            },
        },
        Case {
            name: "a stream of pictures",
            upstream: "data: {\"type\":\"image_generation.completed\",\"b64_json\":\"QUJD\",REPORT}\n\n",
            is_stream: true,
            zeros: IMAGE_ZEROS,
            protocols: None,
            entries: GPT_IMAGE,
            request: |key| {
                let body = json!({ "model": CANNED_MODEL, "prompt": "a cat", "stream": true });
                post(key, "/v1/images/generations", &body)
            },
        },
        Case {
            name: "pictures with a cost",
            upstream: r#"{"data":[{"url":"https://pictures.example/a"}],REPORT}"#,
            is_stream: false,
            zeros: r#""usage":{"cost_in_usd_ticks":0}"#,
            protocols: None,
            entries: [
                "image",
                r#"{ image = "0.04", usd = "1" }"#,
                r#"{ base = "video-a-image" }"#,
            ],
            request: |key| {
                let body = json!({ "model": CANNED_MODEL, "prompt": "a cat" });
                post(key, "/v1/images/generations", &body)
            },
        },
        Case {
            name: "embeddings",
            upstream: r#"{"object":"list","data":[{"index":0,"embedding":[1.0]}],"model":"x",REPORT}"#,
            is_stream: false,
            zeros: r#""usage":{"prompt_tokens":0,"total_tokens":0}"#,
            protocols: None,
            entries: [
                "embedding",
                r#"{ input = "2" }"#,
                "{ context_tokens = 8192 }",
            ],
            request: |key| {
                let body = json!({ "model": CANNED_MODEL, "input": "hello" });
                post(key, "/v1/embeddings", &body)
            },
        },
        Case {
            name: "a transcript",
            upstream: r#"{"text":"Four words of text",REPORT}"#,
            is_stream: false,
            zeros: r#""duration":0"#,
            protocols: None,
            entries: ["audio", r#"{ stt_second = "0.00001" }"#, "{}"],
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
        },
    ]
}

async fn charge(case: &Case, report: &str) -> u64 {
    let upstream = case.upstream.replace("REPORT", report);
    let canned = if case.is_stream {
        CannedUpstream::stream(&upstream).await
    } else {
        CannedUpstream::json(&upstream).await
    };
    let [kind, price, profile] = case.entries;
    let mut entries = canned.entries_of(kind, price, profile);
    if let Some(protocols) = case.protocols {
        let named = format!("preset = \"sim\"\nprotocols = {protocols}");
        entries = entries.replace("preset = \"sim\"", &named);
    }
    let (gateway, key) = GatewayBuilder::default().entries(&entries).funded().await;
    gateway.send(&(case.request)(&key)).await.ok();
    let charge = gateway.usage(&key).await;
    gateway.verify().await;
    charge
}

#[tokio::test]
async fn zeros_beside_what_is_delivered_cost_what_no_report_costs() {
    for case in cases() {
        let missing = charge(&case, r#""x":1"#).await;
        assert!(missing > 0, "{}", case.name);
        assert_eq!(charge(&case, case.zeros).await, missing, "{}", case.name);
    }
}
