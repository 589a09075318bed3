//! The order of routes with equal priority: by cost, by latency, or by conversation.

use serde_json::{Value, json};

use super::{TWO_CHANNELS, hello};
use crate::harness::{GatewayBuilder, Key, Request, TestGateway, ask, with};

const ENTRIES: &str = r#"
    [[model]]
    id = "maker/cheap"
    kind = "text"
    order = "cost"
    routes = [
        { channel = "first", model = "route-a", cost = { input = "1", output = "9" } },
        { channel = "second", model = "route-b", rpm = 6, cost = { input = "2", output = "3" } },
        { channel = "second", model = "route-c", priority = 1, cost = { input = "0", output = "0" } },
    ]
    price = { input = "1.25", output = "10" }
    profile = { context_tokens = 400000, max_output_tokens = 128000 }
    [[model]]
    id = "maker/fast"
    kind = "text"
    order = "latency"
    routes = [{ channel = "first", model = "route-a" }, { channel = "second", model = "route-b" }]
    price = { input = "1.25", output = "10" }
    profile = { context_tokens = 400000, max_output_tokens = 128000 }
    [[model]]
    id = "maker/sticky"
    kind = "text"
    sticky = true
    routes = [{ channel = "first", model = "route-a" }, { channel = "second", model = "route-b" }]
    price = { input = "1.25", output = "10" }
    profile = { context_tokens = 400000, max_output_tokens = 128000 }
"#;

async fn gateway() -> (TestGateway, Key) {
    GatewayBuilder::default()
        .entries(TWO_CHANNELS)
        .entries(ENTRIES)
        .funded()
        .await
}

/// The number of calls to each route.
fn tried(gateway: &TestGateway) -> [usize; 3] {
    ["route-a", "route-b", "route-c"].map(|route| gateway.sim.calls_of(route).len())
}

#[tokio::test]
async fn the_cheapest_route_for_the_call_is_tried_first() {
    let (gateway, key) = gateway().await;
    // With the reserve of 1,000 output tokens, the second route is cheaper.
    for _ in 0..5 {
        gateway.chat(&key, &hello("maker/cheap")).await.ok();
    }
    assert_eq!(tried(&gateway), [0, 5, 0]);
    // A long prompt with a short answer is cheaper on the first route.
    let long = with(
        ask(&"many words ".repeat(2_000)),
        &json!({ "model": "maker/cheap", "max_tokens": 10 }),
    );
    gateway.chat(&key, &long).await.ok();
    assert_eq!(tried(&gateway), [1, 5, 0]);
    // The second route accepts one more call and is then at its limit, so the first one is used. The third route costs
    // nothing, but its priority is lower.
    gateway.chat(&key, &hello("maker/cheap")).await.ok();
    gateway.chat(&key, &hello("maker/cheap")).await.ok();
    assert_eq!(tried(&gateway), [2, 6, 0]);
    gateway.verify().await;
}

#[tokio::test]
async fn the_fastest_route_is_tried_first_once_both_are_measured() {
    let (gateway, key) = gateway().await;
    for stream in [false, true] {
        gateway.sim.forget_calls();
        // The delay is longer than an answer of the other route takes on a busy machine.
        gateway
            .sim
            .queue_faults("route-a", "delay=1500ms", 50)
            .unwrap();
        let body = with(hello("maker/fast"), &json!({ "stream": stream }));
        for _ in 0..12 {
            gateway.chat(&key, &body).await.ok();
        }
        let [slow, fast, _] = tried(&gateway);
        assert_eq!((slow, fast), (1, 11), "{stream}");
        // If the fast route fails, the other one is tried as usual.
        gateway
            .sim
            .queue_faults("route-b", "status=500", 1)
            .unwrap();
        gateway.chat(&key, &body).await.ok();
        let [slow, ..] = tried(&gateway);
        assert_eq!(slow, 2, "{stream}");
    }
}

/// A conversation with this number of turns, in one of three dialects. `number` makes it unique.
fn conversation(dialect: usize, number: usize, turns: usize) -> (&'static str, Value) {
    let topic = format!("Let us talk about number {number}.");
    let mut said = vec![json!({ "role": "user", "content": topic })];
    for turn in 0..turns {
        said.push(json!({ "role": "assistant", "content": format!("answer {turn}") }));
        said.push(json!({ "role": "user", "content": format!("question {turn}") }));
    }
    let model = "maker/sticky";
    match dialect {
        0 => (
            "/v1/chat/completions",
            json!({ "messages": said, "model": model, "stream": turns % 2 == 1 }),
        ),
        1 => (
            "/v1/messages",
            json!({ "model": model, "max_tokens": 64, "system": "Be kind.", "messages": said }),
        ),
        _ => (
            "/v1/responses",
            json!({ "model": model, "instructions": "Be kind.", "input": said, "store": false }),
        ),
    }
}

#[tokio::test]
async fn a_conversation_keeps_its_route_and_conversations_are_shared() {
    let (gateway, key) = gateway().await;
    for dialect in 0..3 {
        let mut used = [false; 2];
        for number in 0..40 {
            if number >= 12 && used == [true; 2] {
                break;
            }
            gateway.sim.forget_calls();
            for turns in 0..3 {
                let (path, body) = conversation(dialect, number, turns);
                let request = Request::post(path).json(&body).bearer(&key.secret);
                gateway.send(&request).await.ok();
            }
            let [first, second, _] = tried(&gateway);
            assert!(
                matches!((first, second), (3, 0) | (0, 3)),
                "{dialect} {number}: {first} {second}"
            );
            used[usize::from(second == 3)] = true;
        }
        // Each run has another wallet, and so other routes. Forty conversations do not all get the same route by
        // chance.
        assert_eq!(used, [true; 2], "{dialect}");
    }
}

/// When a route is not available, only its own conversations move, and they return to it later.
#[tokio::test]
async fn a_lost_route_moves_its_own_conversations_only() {
    let (gateway, key) = gateway().await;
    let route_of = async |number: usize| {
        gateway.sim.forget_calls();
        let (path, body) = conversation(0, number, 0);
        let request = Request::post(path).json(&body).bearer(&key.secret);
        gateway.send(&request).await.ok();
        let [_, second, _] = tried(&gateway);
        second
    };
    let mut before = Vec::new();
    // Conversations are added until both routes are in use.
    while before.len() < 10 || !before.contains(&0) || !before.contains(&1) {
        assert!(before.len() < 40, "one route has all conversations");
        before.push(route_of(before.len()).await);
    }
    // The upstream of the first route asks for a pause.
    let mover = before.iter().position(|second| *second == 0).unwrap();
    gateway
        .sim
        .queue_faults("route-a", "status=429:retry-after=600", 1)
        .unwrap();
    assert_eq!(route_of(mover).await, 1);
    for number in 0..before.len() {
        assert_eq!(route_of(number).await, 1);
    }
    // A success ends the pause before its time. The route is tried once the other one has failed.
    gateway
        .sim
        .queue_faults("route-b", "status=500", 1)
        .unwrap();
    assert_eq!(route_of(mover).await, 1);
    assert_eq!(tried(&gateway), [1, 1, 0]);
    for (number, second) in before.iter().enumerate() {
        assert_eq!(route_of(number).await, *second, "{number}");
    }
}
