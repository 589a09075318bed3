//! Limits of routes: a route at our configured limit is skipped, and a route whose upstream answers 429 is tried last
//! for a while.

use serde_json::{Value, json};

use super::{TWO_CHANNELS, hello};
use crate::admin::{AdminClient, with_token};
use crate::harness::{Answer, GatewayBuilder, Key, Request, TestGateway, ask, eventually, with};

const ENTRIES: &str = r#"
    [[model]]
    id = "maker/limited"
    kind = "text"
    routes = [
        { channel = "first", model = "route-a", rpm = 2 },
        { channel = "second", model = "route-b", rpm = 1, priority = 1 },
    ]
    price = { input = "1.25", output = "10" }
    profile = { context_tokens = 400000, max_output_tokens = 128000 }
    [[model]]
    id = "maker/tokens"
    kind = "text"
    routes = [{ channel = "first", model = "route-t", tpm = 6000 }]
    price = { input = "1.25", output = "10" }
    profile = { context_tokens = 400000, max_output_tokens = 128000 }
    [[model]]
    id = "maker/once"
    kind = "text"
    routes = [{ channel = "first", model = "route-o", rpm = 1 }]
    price = { input = "1.25", output = "10" }
    profile = { context_tokens = 400000, max_output_tokens = 128000 }
    [[model]]
    id = "maker/vector"
    kind = "embedding"
    routes = [{ channel = "first", model = "sim-embed", rpm = 1 }]
    price = { input = "0.1" }
    profile = { context_tokens = 8192 }
    [[model]]
    id = "maker/two"
    kind = "text"
    routes = [
        { channel = "first", model = "route-c" },
        { channel = "second", model = "route-d", priority = 1 },
    ]
    price = { input = "1.25", output = "10" }
    profile = { context_tokens = 400000, max_output_tokens = 128000 }
    [[model]]
    id = "maker/other"
    kind = "text"
    routes = [
        { channel = "first", model = "route-e" },
        { channel = "second", model = "route-f", priority = 1 },
    ]
    price = { input = "1.25", output = "10" }
    profile = { context_tokens = 400000, max_output_tokens = 128000 }
"#;

async fn gateway() -> (TestGateway, Key) {
    // The token limits above are chosen for this reserve.
    let builder =
        with_token(GatewayBuilder::default()).setting("ledger", "output_reserve_tokens = 4096");
    builder
        .entries(TWO_CHANNELS)
        .entries(ENTRIES)
        .funded()
        .await
}

fn calls(gateway: &TestGateway, route: &str) -> usize {
    gateway.sim.calls_of(route).len()
}

/// Checks the gateway's refusal for a model at its limit, and returns the seconds to wait.
fn refused_for(answer: &Answer) -> u64 {
    assert_eq!(answer.failure(), (429, "rate_limit_exceeded".to_owned()));
    answer.header("retry-after").unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_route_at_its_limit_is_passed_over_before_anybody_is_refused() {
    let (gateway, key) = gateway().await;
    let body = hello("maker/limited");
    for (calls_a, calls_b) in [(1, 0), (2, 0), (2, 1)] {
        gateway.chat(&key, &body).await.ok();
        assert_eq!(
            (calls(&gateway, "route-a"), calls(&gateway, "route-b")),
            (calls_a, calls_b)
        );
    }
    let spent = gateway.usage(&key).await;
    // The first route is available again after half a minute.
    let refused = gateway.chat(&key, &body).await;
    let wait = refused_for(&refused);
    assert!((20..=30).contains(&wait), "{wait}");
    let streamed = with(body.clone(), &json!({ "stream": true }));
    refused_for(&gateway.chat(&key, &streamed).await);
    assert_eq!(
        (calls(&gateway, "route-a"), calls(&gateway, "route-b")),
        (2, 1)
    );
    assert_eq!(gateway.usage(&key).await, spent);
    assert_eq!(gateway.frozen(&key).await, 0);

    // The journal names the skipped routes, for answered calls too.
    let admin = AdminClient::new(&gateway);
    let rows = eventually("the rows", async || {
        let rows = admin.get("/calls?model=maker/limited").await;
        let rows = rows["data"].as_array().unwrap().clone();
        (rows.len() == 5).then_some(rows)
    });
    let ids: Vec<String> = rows
        .await
        .iter()
        .map(|row| row["request_id"].as_str().unwrap().to_owned())
        .collect();
    let passed = |channel: &str| json!({ "channel": channel, "model": null, "reason": "passed over (requests per minute)", "passed_over": true, "fallback": null });
    let last = admin.get(&format!("/calls/{}", ids[0])).await;
    assert_eq!(last["attempts"], json!([passed("first"), passed("second")]));
    assert_eq!(
        (&last["channel"], &last["outcome"]),
        (&Value::Null, &Value::Null)
    );
    let third = admin.get(&format!("/calls/{}", ids[2])).await;
    let used = json!({ "channel": "second", "model": "route-b", "reason": null, "passed_over": false, "fallback": null });
    assert_eq!(third["attempts"], json!([passed("first"), used]));
    let output = gateway.cli(&["logs", "show", &ids[2]]).await.stdout;
    assert!(
        output.contains("first: passed over (requests per minute)"),
        "{output}"
    );
    // A reload keeps the state of the limits.
    let off = json!({ "enabled": false });
    admin
        .send("PATCH", "/channels/second", Some(&off))
        .await
        .ok();
    refused_for(&gateway.chat(&key, &body).await);
    gateway.verify().await;
}

#[tokio::test]
async fn limits_hold_for_every_kind_of_call() {
    let (gateway, key) = gateway().await;
    let send = async |path: &str, body: Value| {
        gateway
            .send(&Request::post(path).json(&body).bearer(&key.secret))
            .await
    };
    let vectors = json!({ "model": "maker/vector", "input": "hello" });
    send("/v1/embeddings", vectors.clone()).await.ok();
    refused_for(&send("/v1/embeddings", vectors).await);
    gateway.chat(&key, &hello("maker/once")).await.ok();
    let turns = json!([{ "role": "user", "content": "hello" }]);
    let messages = json!({ "model": "maker/once", "max_tokens": 50, "messages": turns });
    let refused = send("/v1/messages", messages).await;
    assert_eq!(
        (refused.status(), &refused.json()["error"]["code"]),
        (429, &json!("rate_limit_exceeded"))
    );
    assert!(refused.header("retry-after").is_some());
    let responses = json!({ "model": "maker/once", "input": "hello", "stream": true });
    refused_for(&send("/v1/responses", responses).await);
}

/// When a call ends, its estimate is replaced with the tokens that it used.
#[tokio::test]
async fn tokens_are_counted_as_they_were_used() {
    let (gateway, key) = gateway().await;
    let body = with(hello("maker/tokens"), &json!({ "max_tokens": 4000 }));
    for _ in 0..6 {
        gateway.chat(&key, &body).await.ok();
    }
    // A failed call returns all of its tokens.
    for _ in 0..3 {
        gateway
            .sim
            .queue_faults("route-t", "status=500", 1)
            .unwrap();
        assert_eq!(gateway.chat(&key, &body).await.status(), 502);
    }
    gateway.chat(&key, &body).await.ok();
    // Two concurrent calls exceed the limit.
    gateway
        .sim
        .queue_faults("route-t", "hang=content", 1)
        .unwrap();
    let large = with(hello("maker/tokens"), &json!({ "max_tokens": 4090 }));
    let mut open = gateway.stream(&key, &large).await;
    open.next().await.expect("content");
    refused_for(&gateway.chat(&key, &large).await);
    open.leave();
    // For a request larger than the whole limit, waiting does not help.
    let endless = with(
        ask(&"many words ".repeat(5_000)),
        &json!({ "model": "maker/tokens" }),
    );
    let refused = gateway.chat(&key, &endless).await;
    assert_eq!(refused.failure(), (429, "rate_limit_exceeded".to_owned()));
    assert_eq!(refused.header("x-should-retry"), Some("false"));
    assert_eq!(refused.header("retry-after"), None);
}

#[tokio::test]
async fn a_call_that_is_not_admitted_takes_nothing_from_the_limit() {
    let (gateway, key) = gateway().await;
    gateway.wallet("poor", &[]).await;
    let poor = gateway.key("poor", &[]).await;
    for _ in 0..3 {
        let refused = gateway.chat(&poor, &hello("maker/once")).await;
        assert_eq!(refused.failure(), (402, "insufficient_quota".to_owned()));
    }
    gateway.chat(&key, &hello("maker/once")).await.ok();
    refused_for(&gateway.chat(&key, &hello("maker/once")).await);
}

/// A 429 concerns one model of an account, so the channel's other models stay in use.
#[tokio::test]
async fn a_429_of_an_upstream_rests_the_route_and_not_the_channel() {
    let (gateway, key) = gateway().await;
    gateway
        .sim
        .queue_faults("route-c", "status=429:retry-after=30", 1)
        .unwrap();
    for _ in 0..3 {
        gateway.chat(&key, &hello("maker/two")).await.ok();
        gateway.chat(&key, &hello("maker/other")).await.ok();
    }
    assert_eq!(
        (calls(&gateway, "route-c"), calls(&gateway, "route-d")),
        (1, 3)
    );
    assert_eq!(
        (calls(&gateway, "route-e"), calls(&gateway, "route-f")),
        (3, 0)
    );
    let ready = gateway.admin_get("/readyz").await.ok().json();
    assert_eq!(ready["channels"]["first"], "closed");
    // A route whose upstream answered 429 is still tried when all others fail.
    gateway
        .sim
        .queue_faults("route-d", "status=500", 1)
        .unwrap();
    gateway.chat(&key, &hello("maker/two")).await.ok();
    assert_eq!(
        (calls(&gateway, "route-c"), calls(&gateway, "route-d")),
        (2, 4)
    );
    // The call has succeeded, so the route is preferred again.
    gateway.chat(&key, &hello("maker/two")).await.ok();
    assert_eq!(
        (calls(&gateway, "route-c"), calls(&gateway, "route-d")),
        (3, 4)
    );
}
