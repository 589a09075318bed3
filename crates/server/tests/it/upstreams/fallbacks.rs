//! Fallback models: when they answer, under which name, at which price, and within which hold.

use serde_json::{Value, json};

use super::{TWO_CHANNELS, tried};
use crate::admin::{AdminClient, with_token};
use crate::harness::{Answer, GatewayBuilder, Key, Request, TestGateway, ask, eventually, with};

const ENTRIES: &str = r#"
    [[model]]
    id = "maker/named"
    kind = "text"
    fallbacks = ["maker/fixed", "maker/dear"]
    routes = [{ channel = "first", model = "route-a" }]
    price = { input = "1", output = "2" }
    profile = { context_tokens = 400000, max_output_tokens = 128000 }
    [[model]]
    id = "maker/capped"
    kind = "text"
    fallbacks = ["maker/dear"]
    routes = [{ channel = "first", model = "route-a", rpm = 1 }]
    price = { input = "1", output = "2" }
    profile = { context_tokens = 400000, max_output_tokens = 128000 }
    [[model]]
    id = "maker/fixed"
    kind = "text"
    enabled = false
    routes = [{ channel = "second", model = "route-f" }]
    price = { input = "1", output = "2" }
    profile = { context_tokens = 400000, max_output_tokens = 128000, fixed_sampling = true }
    [[model]]
    id = "maker/dear"
    kind = "text"
    routes = [{ channel = "second", model = "route-b", rpm = 20 }]
    price = { input = "3", output = "20" }
    profile = { context_tokens = 400000, max_output_tokens = 128000 }
"#;

async fn gateway() -> (TestGateway, Key) {
    with_token(GatewayBuilder::default())
        .entries(TWO_CHANNELS)
        .entries(ENTRIES)
        .funded()
        .await
}

fn hello(model: &str) -> Value {
    with(ask("hello"), &json!({ "model": model, "max_tokens": 400 }))
}

/// The cost of a usage in micro-credits, at these prices per million tokens.
fn priced(usage: &Value, input: u64, output: u64) -> u64 {
    let tokens = |name: &str| usage[name].as_u64().unwrap();
    input * tokens("prompt_tokens") + output * tokens("completion_tokens")
}

/// The details of an answered call, once the journal has it.
async fn explained(gateway: &TestGateway, answer: &Answer) -> Value {
    let path = format!("/calls/{}", answer.header("x-request-id").unwrap());
    let admin = AdminClient::new(gateway);
    eventually("the row", async || {
        let found = admin.send("GET", &path, None).await;
        (found.status() == 200).then(|| found.json())
    })
    .await
}

#[tokio::test]
async fn another_model_answers_under_its_own_name_and_at_its_own_price() {
    let (gateway, key) = gateway().await;
    let answer = gateway.chat(&key, &hello("maker/named")).await.ok().json();
    assert_eq!(answer["model"], "maker/named");
    let mut spent = priced(&answer["usage"], 1, 2);
    assert_eq!(gateway.usage(&key).await, spent);
    for stream in [false, true] {
        gateway
            .sim
            .queue_faults("route-a", "status=500", 1)
            .unwrap();
        let more = json!({ "stream": stream, "stream_options": { "include_usage": true } });
        let body = if stream {
            with(hello("maker/named"), &more)
        } else {
            hello("maker/named")
        };
        let answer = gateway.chat(&key, &body).await.ok();
        let last: Value = if stream {
            assert!(!answer.text().contains("maker/named"));
            let usage = answer
                .text()
                .lines()
                .rev()
                .find(|line| line.contains("\"usage\":{"));
            serde_json::from_str(&usage.unwrap()["data: ".len()..]).unwrap()
        } else {
            answer.json()
        };
        assert_eq!(last["model"], "maker/dear");
        spent += priced(&last["usage"], 3, 20);
        assert_eq!(gateway.usage(&key).await, spent, "{stream}");
        assert_eq!(gateway.frozen(&key).await, 0);
        let call = explained(&gateway, &answer).await;
        assert_eq!(
            (&call["model"], &call["named_model"]),
            (&json!("maker/dear"), &json!("maker/named"))
        );
        assert_eq!(call["price"]["model"], "maker/dear");
        assert_eq!(call["attempts"][0]["channel"], "first");
        let last = &call["attempts"][1];
        assert_eq!(
            (&last["channel"], &last["fallback"]),
            (&json!("second"), &json!("maker/dear"))
        );
        let id = call["request_id"].as_str().unwrap();
        let shown = gateway.cli(&["logs", "show", id]).await.stdout;
        assert!(
            shown.contains("maker/named has no route left, maker/dear may answer"),
            "{shown}"
        );
    }
    assert_eq!(tried(&gateway), (3, 2));
    gateway.verify().await;
}

#[tokio::test]
async fn a_refused_credential_leaves_the_fallbacks() {
    let (gateway, key) = gateway().await;
    gateway
        .sim
        .queue_faults("route-a", "status=401", 1)
        .unwrap();
    for _ in 0..3 {
        let answer = gateway.chat(&key, &hello("maker/named")).await.ok();
        assert_eq!(answer.json()["model"], "maker/dear");
        let call = explained(&gateway, &answer).await;
        assert_eq!(call["named_model"], "maker/named");
    }
    // The channel is disabled after the first refusal.
    assert_eq!(tried(&gateway), (1, 3));
    gateway.verify().await;
}

/// The hold covers the more expensive model, so it is enough for many growth steps of the cheap one.
#[tokio::test]
async fn a_stream_grows_into_the_hold_that_a_dearer_model_would_need() {
    let gateway = with_token(GatewayBuilder::default())
        .setting("ledger", "output_reserve_tokens = 100")
        .entries(TWO_CHANNELS)
        .entries(ENTRIES)
        .start()
        .await;
    gateway.wallet("thin", &["--balance", "0.0023"]).await;
    let key = gateway.key("thin", &[]).await;
    let more = json!({ "model": "maker/named", "max_tokens": 2000, "stream": true });
    let answer = gateway.chat(&key, &with(ask("count to 300"), &more)).await;
    let text = answer.ok();
    assert!(text.text().contains("[DONE]"), "{}", text.text());
    assert!(!text.text().contains("insufficient_quota"));
    let usage = gateway.usage(&key).await;
    assert!((600..2_300).contains(&usage), "{usage}");
    assert_eq!(gateway.frozen(&key).await, 0);
    gateway.verify().await;
}

#[tokio::test]
async fn a_fallback_answers_in_every_dialect() {
    let (gateway, key) = gateway().await;
    let turns = json!([{ "role": "user", "content": "hello" }]);
    let parts = json!([{ "role": "user", "parts": [{ "text": "hello" }] }]);
    for (path, body) in [
        (
            "/v1/messages",
            json!({ "model": "maker/named", "max_tokens": 50, "messages": turns }),
        ),
        (
            "/v1/responses",
            json!({ "model": "maker/named", "input": "hello" }),
        ),
        (
            "/v1beta/models/maker/named:generateContent",
            json!({ "contents": parts }),
        ),
        (
            "/v1/interactions",
            json!({ "model": "maker/named", "input": "hello", "store": false }),
        ),
    ] {
        gateway
            .sim
            .queue_faults("route-a", "status=503", 1)
            .unwrap();
        let request = Request::post(path).json(&body).bearer(&key.secret);
        let answer = gateway.send(&request).await.ok();
        assert!(
            answer.text().contains("maker/dear"),
            "{path}: {}",
            answer.text()
        );
        assert!(
            !answer.text().contains("maker/named"),
            "{path}: {}",
            answer.text()
        );
        // A successful call in between keeps the breaker closed.
        gateway.chat(&key, &hello("maker/named")).await.ok();
    }
    assert_eq!(tried(&gateway).1, 4);
    assert_eq!(gateway.frozen(&key).await, 0);
    gateway.verify().await;
}

#[tokio::test]
async fn a_fallback_answers_for_a_model_at_its_limit() {
    let (gateway, key) = gateway().await;
    for (named, expected) in [
        ("maker/capped", "maker/capped"),
        ("maker/capped", "maker/dear"),
    ] {
        let answer = gateway.chat(&key, &hello(named)).await.ok();
        assert_eq!(answer.json()["model"], expected);
        if expected == "maker/dear" {
            let call = explained(&gateway, &answer).await;
            assert_eq!(call["attempts"][0]["passed_over"], true);
            assert_eq!(call["named_model"], "maker/capped");
        }
    }
    assert_eq!(tried(&gateway), (1, 1));
    // If the fallback is at its limit too, `retry-after` refers to the named model. On a slow machine the limits admit
    // further calls meanwhile.
    let refused = eventually("a refusal", async || {
        let answer = gateway.chat(&key, &hello("maker/capped")).await;
        (answer.status() != 200).then_some(answer)
    })
    .await;
    assert_eq!(refused.failure(), (429, "rate_limit_exceeded".to_owned()));
    assert!(
        refused.text().contains("maker/capped"),
        "{}",
        refused.text()
    );
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    // The fallback is available again after three seconds.
    assert!((4..=60).contains(&wait), "{wait}");
    gateway.verify().await;
}

#[tokio::test]
async fn nothing_falls_back_after_content_or_because_of_the_request() {
    let (gateway, key) = gateway().await;
    for faults in ["status=400", "status=422"] {
        gateway.sim.queue_faults("route-a", faults, 1).unwrap();
        let refused = gateway.chat(&key, &hello("maker/named")).await;
        assert_eq!(refused.failure().1, "upstream_rejected", "{faults}");
    }
    gateway
        .sim
        .queue_faults("route-a", "cut=content", 1)
        .unwrap();
    let body = with(
        ask("reply with 30 words"),
        &json!({ "model": "maker/named" }),
    );
    let (events, _) = gateway.stream(&key, &body).await.rest().await;
    assert!(events.last().unwrap().json()["error"].is_object());
    assert_eq!(tried(&gateway), (3, 0));
    // Callers cannot choose fallbacks.
    let asked = with(
        hello("maker/named"),
        &json!({ "fallbacks": ["maker/dear"] }),
    );
    let refused = gateway.chat(&key, &asked).await;
    assert_eq!(refused.failure(), (400, "routing_not_supported".to_owned()));
}

#[tokio::test]
async fn the_error_is_that_of_the_named_model() {
    let (gateway, key) = gateway().await;
    gateway
        .sim
        .queue_faults("route-a", "status=429:retry-after=7", 1)
        .unwrap();
    gateway
        .sim
        .queue_faults("route-b", "status=400", 1)
        .unwrap();
    let refused = gateway.chat(&key, &hello("maker/named")).await;
    assert_eq!(refused.failure(), (503, "upstream_overloaded".to_owned()));
    assert_eq!(refused.header("retry-after"), Some("7"));
    assert_eq!(tried(&gateway), (1, 1));
    assert_eq!(
        (gateway.usage(&key).await, gateway.frozen(&key).await),
        (0, 0)
    );
    let call = explained(&gateway, &refused).await;
    assert_eq!(
        (&call["model"], &call["outcome"]),
        (&json!("maker/named"), &json!("released"))
    );
}

/// Makes a slow call, and returns the amount that it freezes and its answer.
async fn frozen_by(gateway: &TestGateway, key: &Key, model: &str, route: &str) -> (u64, Answer) {
    gateway.sim.queue_faults(route, "delay=500ms", 1).unwrap();
    let body = hello(model);
    tokio::join!(
        async {
            eventually("a hold", async || {
                Some(gateway.frozen(key).await).filter(|it| *it > 0)
            })
            .await
        },
        gateway.chat(key, &body)
    )
}

#[tokio::test]
async fn the_hold_covers_the_dearest_and_poor_wallets_do_without() {
    let (gateway, key) = gateway().await;
    let (held_for_dear, _) = frozen_by(&gateway, &key, "maker/dear", "route-b").await;
    let (held, answer) = frozen_by(&gateway, &key, "maker/named", "route-a").await;
    assert_eq!(held, held_for_dear);
    assert_eq!(answer.ok().json()["model"], "maker/named");
    // The balance is enough for the named model, but not for its fallback.
    gateway.wallet("poor", &["--balance", "0.005"]).await;
    let poor = gateway.key("poor", &[]).await;
    assert!(held_for_dear > 5_000);
    let body = with(hello("maker/named"), &json!({ "max_tokens": 400 }));
    gateway.chat(&poor, &body).await.ok();
    gateway
        .sim
        .queue_faults("route-a", "status=500", 1)
        .unwrap();
    let failed = gateway.chat(&poor, &body).await;
    assert_eq!(failed.failure(), (502, "upstream_error".to_owned()));
    assert_eq!(gateway.frozen(&poor).await, 0);
    gateway.verify().await;
}

/// A key's list of models restricts the model that the caller names, not its fallbacks (K12).
#[tokio::test]
async fn a_key_that_may_call_the_named_model_gets_its_fallback() {
    let (gateway, _) = gateway().await;
    gateway.wallet("listed", &["--balance", "5"]).await;
    let key = gateway.key("listed", &["--models", "maker/named"]).await;
    gateway
        .sim
        .queue_faults("route-a", "status=500", 1)
        .unwrap();
    let answer = gateway.chat(&key, &hello("maker/named")).await.ok().json();
    assert_eq!(answer["model"], "maker/dear");
    let refused = gateway.chat(&key, &hello("maker/dear")).await;
    assert_eq!(refused.status(), 404);
}

#[tokio::test]
async fn a_fallback_that_cannot_take_the_request_is_passed_over() {
    let (gateway, key) = gateway().await;
    let admin = AdminClient::new(&gateway);
    let mut config = admin.get("/config").await;
    config.as_object_mut().unwrap().remove("kept_in");
    let models = config["models"].as_array_mut().unwrap();
    let fixed = models
        .iter_mut()
        .find(|it| it["id"] == "maker/fixed")
        .unwrap();
    fixed["enabled"] = json!(true);
    admin.send("PUT", "/config", Some(&config)).await.ok();
    gateway
        .sim
        .queue_faults("route-a", "status=500", 2)
        .unwrap();
    let turns = json!([{ "role": "user", "content": "hello" }]);
    let mut body = json!({ "model": "maker/named", "max_tokens": 50, "messages": turns });
    let send = async |body: &Value| {
        let request = Request::post("/v1/messages").json(body).bearer(&key.secret);
        gateway.send(&request).await.ok()
    };
    assert_eq!(send(&body).await.json()["model"], "maker/fixed");
    body["temperature"] = json!(0.3);
    let answer = send(&body).await;
    assert_eq!(answer.json()["model"], "maker/dear");
    let call = explained(&gateway, &answer).await;
    let passed = &call["attempts"][1];
    assert_eq!(
        passed["reason"], "passed over (unsupported_parameter)",
        "{call}"
    );
    // The named model answers, so its fallbacks do not matter.
    let answer = send(&body).await;
    assert_eq!(answer.json()["model"], "maker/named");
    let call = explained(&gateway, &answer).await;
    assert_eq!(call["attempts"].as_array().unwrap().len(), 1, "{call}");
    gateway.verify().await;
}
