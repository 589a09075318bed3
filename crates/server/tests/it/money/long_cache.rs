//! Writes to the one-hour cache: they have a price of their own, or are refused.

use serde_json::{Value, json};

use crate::harness::{
    CANNED_MODEL, CANNED_NAME, CannedUpstream, Dialect, GatewayBuilder, Key, Request, TestGateway,
    with,
};

const ANSWER: &str = r#"{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"done"}],"stop_reason":"end_turn","usage":{"input_tokens":10,"cache_creation_input_tokens":300,"cache_creation":{"ephemeral_5m_input_tokens":100,"ephemeral_1h_input_tokens":200},"output_tokens":2}}"#;

async fn gateway(canned: &CannedUpstream, cache_prices: &str) -> (TestGateway, Key) {
    gateway_speaking("messages", canned, cache_prices).await
}

async fn gateway_speaking(
    dialect: &str,
    canned: &CannedUpstream,
    cache_prices: &str,
) -> (TestGateway, Key) {
    let price = format!("{{ input = \"4\", output = \"20\"{cache_prices} }}");
    let profile = "{ context_tokens = 400000, max_output_tokens = 128000 }";
    let entries = canned.entries_of("text", &price, profile).replace(
        &format!("model = \"{CANNED_NAME}\""),
        &format!("model = \"{CANNED_NAME}\", dialect = \"{dialect}\""),
    );
    GatewayBuilder::default().entries(&entries).funded().await
}

fn call(key: &Key, extra: &Value) -> Request {
    let body = with(Dialect::Messages.ask("hello"), extra);
    Dialect::Messages.call(&key.secret, CANNED_MODEL, body, false)
}

/// Requests that ask for the one-hour cache in three different places.
fn asks() -> [Value; 3] {
    let long = json!({ "type": "ephemeral", "ttl": "1h" });
    [
        json!({ "cache_control": long }),
        json!({ "system": [{ "type": "text", "text": "x", "cache_control": long }] }),
        json!({ "tools": [{ "name": "f", "input_schema": {}, "cache_control": long }] }),
    ]
}

#[tokio::test]
async fn one_hour_writes_have_their_own_price() {
    let canned = CannedUpstream::json(ANSWER).await;
    let prices = ", cache_write = \"5\", cache_write_1h = \"8\"";
    let (gateway, key) = gateway(&canned, prices).await;
    for ask in asks() {
        let before = gateway.usage(&key).await;
        gateway.send(&call(&key, &ask)).await.ok();
        let charge = 10 * 4 + 100 * 5 + 200 * 8 + 2 * 20;
        assert_eq!(gateway.usage(&key).await - before, charge);
    }
    let report = gateway.cli_json(&["ledger", "report"]).await;
    assert!(report.to_string().contains("cache_write_1h"), "{report}");
    gateway.verify().await;
}

#[tokio::test]
async fn a_card_without_their_price_refuses_them() {
    let canned = CannedUpstream::json(ANSWER).await;
    let (gateway, key) = gateway(&canned, ", cache_write = \"5\"").await;
    for ask in asks() {
        let refused = gateway.send(&call(&key, &ask)).await;
        let failure = Dialect::Messages.failure(&refused);
        assert_eq!(failure, (400, "unsupported_parameter".to_owned()), "{ask}");
    }
    let checked = gateway.cli_json(&["check"]).await;
    assert!(
        checked["notes"].to_string().contains("cache_write_1h"),
        "{checked}"
    );
    assert!(
        canned.bodies().is_empty(),
        "refused before the upstream is called"
    );
    assert_eq!(gateway.usage(&key).await, 0);
    // The configured cache price applies to the five-minute cache.
    let short = json!({ "cache_control": { "type": "ephemeral", "ttl": "5m" } });
    gateway.send(&call(&key, &short)).await.ok();
    gateway.verify().await;
}

#[tokio::test]
async fn a_card_without_cache_prices_takes_the_input_price() {
    let canned = CannedUpstream::json(ANSWER).await;
    let (gateway, key) = gateway(&canned, "").await;
    gateway.send(&call(&key, &asks()[0])).await.ok();
    assert_eq!(gateway.usage(&key).await, 310 * 4 + 2 * 20);
    gateway.verify().await;
}

/// Routers take `cache_control` on chat too. Their report has one count for all writes.
#[tokio::test]
async fn writes_of_a_chat_request_for_the_one_hour_cache_have_its_price() {
    const CHAT_ANSWER: &str = r#"{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"done"},"finish_reason":"stop"}],"usage":{"prompt_tokens":310,"completion_tokens":2,"total_tokens":312,"prompt_tokens_details":{"cache_write_tokens":300}}}"#;
    let canned = CannedUpstream::json(CHAT_ANSWER).await;
    for (prices, ttl, write) in [
        (", cache_write = \"5\", cache_write_1h = \"8\"", "1h", 8),
        (", cache_write = \"5\", cache_write_1h = \"8\"", "5m", 5),
        (", cache_write = \"5\"", "1h", 5),
        ("", "1h", 4),
    ] {
        let (gateway, key) = gateway_speaking("chat", &canned, prices).await;
        let body = json!({ "messages": [{ "role": "user", "content": [{
            "type": "text", "text": "hello", "cache_control": { "type": "ephemeral", "ttl": ttl },
        }] }] });
        let call = Dialect::Chat.call(&key.secret, CANNED_MODEL, body, false);
        gateway.send(&call).await.ok();
        let charge = 10 * 4 + 300 * write + 2 * 20;
        assert_eq!(gateway.usage(&key).await, charge, "{prices} {ttl}");
        gateway.verify().await;
    }
}
