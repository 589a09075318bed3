//! Bodies of millions of tiny items take no more than a few times their size, whatever reads them.

use serde_json::json;

use crate::harness::pictures::peak_memory;
use crate::harness::{GatewayBuilder, Key, MODEL, Request};

const BODY_BYTES: usize = 4 << 20;
/// What all requests together may add to the memory of the process. Each item takes two or four bytes of a body, so a
/// list of values with a few words for each item would take more.
const GROWTH_BYTES_MAX: usize = 8 * BODY_BYTES;

const ENTRIES: &str = r#"
[[channel]]
name = "contents"
preset = "sim"
base_url = "http://SIM/v1"
protocols = ["generate"]
[[model]]
id = "maker/contents"
kind = "embedding"
routes = [{ channel = "contents", model = "sim-embed" }]
price = { input = "0.1" }
"#;

/// A request whose `list` starts with as many `items` as fit into the body, and ends with `end`.
fn request(key: &Key, path: &str, model: &str, list: &str, item: &str, end: &str) -> Request {
    let items = format!("{item},").repeat(BODY_BYTES / (item.len() + 1));
    let model = json!(model);
    let body =
        format!(r#"{{"model":{model},"max_tokens":1,"prompt":"x","{list}":[{items}{end}]}}"#);
    Request::post(path)
        .bearer(&key.secret)
        .header("content-type", "application/json")
        .header("anthropic-version", "2023-06-01")
        .body(body)
}

#[tokio::test]
async fn tiny_items_take_no_more_memory_than_the_body_explains() {
    let (gateway, key) = GatewayBuilder::default().entries(ENTRIES).funded().await;
    gateway.get(&key, "/v1/models").await.ok();
    let before = peak_memory(gateway.pid());
    let thought = r#"{"role":"assistant","content":[{"type":"thinking"}]}"#;
    let blocks = format!(
        r#"{{"role":"assistant","content":[{}{{"type":"thinking"}}]}}"#,
        "1,".repeat(BODY_BYTES / 2)
    );
    let reasoning = r#"{"type":"reasoning"}"#;
    for (path, model, list, item, last) in [
        ("/v1/messages", MODEL, "messages", "1", thought),
        ("/v1/messages", MODEL, "messages", "1", &*blocks),
        ("/v1/responses", MODEL, "input", "1", reasoning),
        (
            "/v1/embeddings",
            "maker/contents",
            "input",
            "\"a\"",
            "\"a\"",
        ),
        ("/v1/images/edits", MODEL, "images", "\"a\"", "\"a\""),
    ] {
        let answer = gateway
            .send(&request(&key, path, model, list, item, last))
            .await;
        let status = answer.status();
        assert!((400..500).contains(&status), "{path}: {}", answer.text());
        let grown = peak_memory(gateway.pid()).saturating_sub(before);
        assert!(grown < GROWTH_BYTES_MAX, "{path}: {grown}");
    }
    gateway.verify().await;
}
