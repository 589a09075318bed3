//! Holds for prompts that are crafted to be undercounted (`docs/decisions/022`).

use serde_json::json;

use crate::harness::{CANNED_MODEL, CannedUpstream, GatewayBuilder, TestGateway, ask, with};

const ANSWER: &str = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"done"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12}}"#;

/// A prompt of two megabytes with long runs of spaces between its words.
fn hidden_prompt() -> String {
    format!("{}{}", " ".repeat(16_000), "word ".repeat(25_000)).repeat(14)
}

#[tokio::test]
async fn a_prompt_between_blanks_is_held_for() {
    let gateway = TestGateway::start().await;
    // The balance is enough for the spaces, but not for the words.
    gateway.wallet("thin", &["--balance", "0.1"]).await;
    let key = gateway.key("thin", &[]).await;
    let refused = gateway.chat(&key, &ask(&hidden_prompt())).await;
    assert_eq!(refused.failure(), (402, "insufficient_quota".to_owned()));
    assert_eq!(gateway.upstream_calls(), 0);
}

#[tokio::test]
async fn no_shape_of_a_body_counts_for_nothing() {
    let gateway = TestGateway::start().await;
    gateway.wallet("thin", &["--balance", "0.1"]).await;
    let key = gateway.key("thin", &[]).await;
    let megabytes = 2 << 20;
    let data = format!("data:image/png;base64,{}", "A".repeat(megabytes));
    for extra in [
        json!({ "documents": [" ".repeat(megabytes)] }),
        json!({ "tools": [{ "type": "function", "function": { "name": "f", "parameters": { "url": data } } }] }),
        json!({ "metadata": { "x": vec![7; megabytes / 2] } }),
        json!({ "messages": [{ "role": "user", "content": [{ "type": "text", "text": "x", "url": "x".repeat(megabytes) }] }] }),
    ] {
        let refused = gateway.chat(&key, &with(ask("hello"), &extra)).await;
        assert_eq!(refused.failure(), (402, "insufficient_quota".to_owned()));
    }
    assert_eq!(gateway.upstream_calls(), 0);
}

/// A file given by URL may fill the context, so the hold covers the whole context. The key's limit of tokens per minute
/// does not count the whole context.
#[tokio::test]
async fn a_file_that_is_only_named_holds_the_whole_context() {
    let canned = CannedUpstream::json(ANSWER).await;
    let gateway = GatewayBuilder::default()
        .entries(&canned.entries())
        .start()
        .await;
    // The context of 400,000 tokens costs 0.5 credits, the reserve 0.01.
    gateway.wallet("thin", &["--balance", "0.5"]).await;
    gateway.wallet("wide", &["--balance", "1"]).await;
    let file = json!({ "model": CANNED_MODEL, "messages": [{ "role": "user", "content": [
        { "type": "file", "file": { "file_url": "https://a.example/1.pdf" } },
    ] }] });
    let body = with(ask("hello"), &file);
    let key = gateway.key("thin", &[]).await;
    let refused = gateway.chat(&key, &body).await;
    assert_eq!(refused.failure(), (402, "insufficient_quota".to_owned()));
    let key = gateway.key("wide", &["--tpm", "20000"]).await;
    gateway.chat(&key, &body).await.ok();
    gateway.verify().await;
}
