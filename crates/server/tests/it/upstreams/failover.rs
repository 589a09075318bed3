//! Failover to other routes: before content, never after, in the order of priority and health (S3).

use serde_json::json;

use super::{TWO_CHANNELS, tried};
use crate::harness::{GatewayBuilder, Key, TestGateway, ask, cost, expected_cost, with};

const TWO: &str = r#"
    [[channel]]
    name = "closed"
    preset = "sim"
    base_url = "http://127.0.0.1:9/v1"
    [[model]]
    id = "maker/two"
    kind = "text"
    routes = [
        { channel = "second", model = "route-b", priority = 1 },
        { channel = "first", model = "route-a", priority = 0 },
    ]
    price = { input = "1.25", cached_input = "0.125", output = "10" }
    profile = { context_tokens = 400000, max_output_tokens = 128000 }
    [[model]]
    id = "maker/unplugged"
    kind = "text"
    routes = [
        { channel = "closed", model = "route-c", priority = 0 },
        { channel = "second", model = "route-b", priority = 1 },
    ]
    price = { input = "1.25", output = "10" }
    profile = { context_tokens = 400000, max_output_tokens = 128000 }
    [[model]]
    id = "maker/shared"
    kind = "text"
    routes = [
        { channel = "first", model = "route-a", weight = 3 },
        { channel = "second", model = "route-b", weight = 1 },
    ]
    price = { input = "1.25", output = "10" }
    profile = { context_tokens = 400000, max_output_tokens = 128000 }
"#;

async fn two_routes() -> (TestGateway, Key) {
    GatewayBuilder::default()
        .setting("timeouts", "upstream_first_byte_ms = 1000")
        .setting("timeouts", "upstream_idle_ms = 1000")
        .entries(TWO_CHANNELS)
        .entries(TWO)
        .funded()
        .await
}

/// One hold covers all attempts, and the caller gets one answer.
#[tokio::test]
async fn another_route_answers_when_the_first_fails_before_content() {
    let (gateway, key) = two_routes().await;
    for (faults, streamed_only) in [
        ("status=500", false),
        ("status=503", false),
        ("status=429", false),
        ("status=408", false),
        ("status=404", false),
        ("status=402", false),
        ("reset=head", false),
        ("cut=head", false),
        ("garbage", false),
        ("wrong-type", false),
        ("empty-object", false),
        ("error-in-200", false),
        ("reset=body", true),
        ("cut=60", true),
        ("error-event=0", true),
        ("garbage-event=0", true),
    ] {
        for stream in [false, true] {
            if streamed_only && !stream {
                continue;
            }
            gateway.sim.forget_calls();
            let before = gateway.usage(&key).await;
            gateway.sim.queue_faults("route-a", faults, 1).unwrap();
            let mut body = with(
                ask("say exactly: from the other"),
                &json!({ "model": "maker/two" }),
            );
            if stream {
                let streamed =
                    json!({ "stream": true, "stream_options": { "include_usage": true } });
                body = with(body, &streamed);
            }
            let answer = gateway.chat(&key, &body).await.ok();
            assert_eq!(tried(&gateway), (1, 1), "{faults} {stream}");
            let usage = if stream {
                assert!(answer.text().ends_with("data: [DONE]\n\n"));
                let mut lines = answer.text().lines().rev();
                let line = lines.find(|line| line.contains("\"usage\":{")).unwrap();
                let chunk: serde_json::Value =
                    serde_json::from_str(&line["data: ".len()..]).unwrap();
                chunk["usage"].clone()
            } else {
                answer.json()["usage"].clone()
            };
            assert_eq!(
                gateway.usage(&key).await - before,
                expected_cost(&usage),
                "{faults} {stream}"
            );
            assert_eq!(gateway.frozen(&key).await, 0);
            // A successful call in between keeps the breaker closed.
            let good = with(ask("hello"), &json!({ "model": "maker/two" }));
            gateway.chat(&key, &good).await.ok();
            assert_eq!(
                tried(&gateway),
                (2, 1),
                "{faults} {stream}: the first is still preferred"
            );
        }
    }
    gateway.verify().await;
}

#[tokio::test]
async fn a_connection_that_cannot_be_made_is_no_answer() {
    let (gateway, key) = two_routes().await;
    let body = with(
        ask("say exactly: reached"),
        &json!({ "model": "maker/unplugged" }),
    );
    for _ in 0..3 {
        let answer = gateway.chat(&key, &body).await.ok().json();
        assert_eq!(answer["choices"][0]["message"]["content"], "reached");
    }
}

/// If an upstream refuses the request itself, the next route would refuse it too.
#[tokio::test]
async fn a_refused_request_is_not_tried_elsewhere() {
    let (gateway, key) = two_routes().await;
    for faults in ["status=400", "status=422", "status=413"] {
        gateway.sim.forget_calls();
        gateway.sim.queue_faults("route-a", faults, 1).unwrap();
        let body = with(ask("hello"), &json!({ "model": "maker/two" }));
        let answer = gateway.chat(&key, &body).await;
        assert_eq!(answer.failure().1, "upstream_rejected");
        assert_eq!(tried(&gateway), (1, 0), "{faults}");
    }
}

/// S3: after the first byte of content there is no retry and no failover.
#[tokio::test]
async fn nothing_is_tried_again_after_content() {
    let (gateway, key) = two_routes().await;
    let body = with(ask("reply with 30 words"), &json!({ "model": "maker/two" }));
    for faults in [
        "reset=content",
        "cut=content",
        "error-event=2",
        "garbage-event=1",
        "hang=content",
    ] {
        gateway.sim.forget_calls();
        gateway.sim.queue_faults("route-a", faults, 1).unwrap();
        let (events, _) = gateway.stream(&key, &body).await.rest().await;
        assert!(
            events.last().unwrap().json()["error"].is_object(),
            "{faults}"
        );
        assert_eq!(tried(&gateway), (1, 0), "{faults}");
        gateway.chat(&key, &body).await.ok();
    }
    // Half of a buffered answer counts as content too.
    for faults in ["cut=content", "reset=content"] {
        gateway.sim.forget_calls();
        let spent = gateway.usage(&key).await;
        gateway.sim.queue_faults("route-a", faults, 1).unwrap();
        let answer = gateway.chat(&key, &body).await;
        assert_eq!(
            answer.failure(),
            (502, "upstream_error".to_owned()),
            "{faults}"
        );
        assert_eq!(tried(&gateway), (1, 0), "{faults}");
        assert_eq!(gateway.usage(&key).await, spent);
        gateway.chat(&key, &body).await.ok();
    }
    gateway.verify().await;
}

#[tokio::test]
async fn when_all_routes_fail_the_last_word_is_told() {
    let (gateway, key) = two_routes().await;
    gateway
        .sim
        .queue_faults("route-a", "status=500", 1)
        .unwrap();
    gateway
        .sim
        .queue_faults("route-b", "status=429:retry-after=3", 1)
        .unwrap();
    let body = with(ask("hello"), &json!({ "model": "maker/two" }));
    let answer = gateway.chat(&key, &body).await;
    assert_eq!(answer.failure(), (503, "upstream_overloaded".to_owned()));
    assert_eq!(answer.header("retry-after"), Some("3"));
    assert_eq!(gateway.usage(&key).await, 0);
    assert_eq!(gateway.frozen(&key).await, 0);
}

/// Breakers only change the order of routes, and never cause an outage.
#[tokio::test]
async fn a_failing_route_is_tried_last_until_it_has_rested() {
    let (gateway, key) = two_routes().await;
    let body = with(ask("hello"), &json!({ "model": "maker/two" }));
    gateway
        .sim
        .queue_faults("route-a", "status=500", 5)
        .unwrap();
    for _ in 0..5 {
        gateway.chat(&key, &body).await.ok();
    }
    assert_eq!(tried(&gateway), (5, 5));
    for _ in 0..5 {
        gateway.chat(&key, &body).await.ok();
    }
    assert_eq!(tried(&gateway), (5, 10), "the open breaker stands last");
    let ready = gateway.admin_get("/readyz").await.ok().json();
    assert_eq!(
        ready["channels"]["first"], "open",
        "an upstream in trouble is detail only"
    );
    // If the other route fails too, the one with the open breaker is still tried.
    gateway
        .sim
        .queue_faults("route-b", "status=500", 1)
        .unwrap();
    gateway.chat(&key, &body).await.ok();
    assert_eq!(tried(&gateway), (6, 11));
    gateway.verify().await;
}

#[tokio::test]
async fn equal_routes_share_calls_by_weight() {
    let (gateway, key) = two_routes().await;
    let body = with(ask("hello"), &json!({ "model": "maker/shared" }));
    for _ in 0..80 {
        gateway.chat(&key, &body).await.ok();
    }
    let (first, second) = tried(&gateway);
    assert_eq!(first + second, 80);
    // Weights of three to one: a correct implementation falls outside these bounds in fewer than one of a million runs.
    assert!((40..=76).contains(&first), "{first}");
}

/// S3: a silent route uses up the deadline of the call, so no other route is tried.
#[tokio::test]
async fn silence_is_not_waited_for_twice() {
    let (gateway, key) = two_routes().await;
    gateway.sim.queue_faults("route-a", "hang=head", 1).unwrap();
    let body = with(ask("hello"), &json!({ "model": "maker/two" }));
    let answer = gateway.chat(&key, &body).await;
    assert_eq!(answer.failure(), (504, "upstream_timeout".to_owned()));
    assert_eq!(tried(&gateway), (1, 0));
    assert_eq!(gateway.usage(&key).await, 0);
    assert!(cost(1, 0, 0) > 0);
}

/// An invalid body with status 200 counts as a failure of the channel, like a 500.
#[tokio::test]
async fn garbage_under_a_good_status_opens_the_breaker() {
    for faults in ["garbage", "empty-object", "error-in-200"] {
        for stream in [false, true] {
            let (gateway, key) = two_routes().await;
            gateway.sim.queue_faults("route-a", faults, 5).unwrap();
            let more = json!({ "model": "maker/two", "stream": stream });
            for _ in 0..5 {
                gateway.chat(&key, &with(ask("hello"), &more)).await.ok();
            }
            assert_eq!(tried(&gateway), (5, 5), "{faults} {stream}");
            gateway.chat(&key, &with(ask("hello"), &more)).await.ok();
            assert_eq!(
                tried(&gateway),
                (5, 6),
                "{faults} {stream}: the first rests"
            );
        }
    }
}

/// A 403 concerns one model or region, so the channel stays in use.
#[tokio::test]
async fn a_forbidden_model_does_not_take_its_channel_out() {
    let (gateway, key) = two_routes().await;
    gateway
        .sim
        .queue_faults("route-a", "status=403", 1)
        .unwrap();
    let body = with(ask("hello"), &json!({ "model": "maker/two" }));
    gateway.chat(&key, &body).await.ok();
    assert_eq!(tried(&gateway), (1, 1), "the other route answered");
    gateway.chat(&key, &body).await.ok();
    assert_eq!(tried(&gateway), (2, 1), "the first is still preferred");
}
