//! Error texts of real vendors: what callers see, and which routes are tried.

use serde_json::json;

use super::{TWO_CHANNELS, tried};
use crate::harness::{
    Dialect, GatewayBuilder, Key, TestGateway, ask, expected_cost, model_via, with,
};

const TWO_ROUTES: &str = r#"
    [[model]]
    id = "maker/two"
    kind = "text"
    routes = [
        { channel = "first", model = "route-a", priority = 0 },
        { channel = "second", model = "route-b", priority = 1 },
    ]
    price = { input = "1.25", cached_input = "0.125", output = "10" }
    profile = { context_tokens = 400000, max_output_tokens = 128000 }
"#;

async fn two_routes() -> (TestGateway, Key) {
    GatewayBuilder::default()
        .entries(TWO_CHANNELS)
        .entries(TWO_ROUTES)
        .funded()
        .await
}

/// If an upstream does not have the model, the next route is tried, for every status that vendors use.
#[tokio::test]
async fn another_route_answers_when_the_first_does_not_have_the_model() {
    let (gateway, key) = two_routes().await;
    let body = with(
        ask("say exactly: from the other"),
        &json!({ "model": "maker/two" }),
    );
    for vendor in sim::no_such_model_vendors() {
        gateway.sim.forget_calls();
        let faults = format!("no-such-model={vendor}");
        gateway.sim.queue_faults("route-a", &faults, 1).unwrap();
        let before = gateway.usage(&key).await;
        let answer = gateway.chat(&key, &body).await.ok().json();
        assert_eq!(answer["choices"][0]["message"]["content"], "from the other");
        assert_eq!(tried(&gateway), (1, 1), "{vendor}");
        let spent = gateway.usage(&key).await - before;
        assert_eq!(spent, expected_cost(&answer["usage"]), "{vendor}");
    }
    // No upstream has the model: a mistake of the operator, so the caller gets 502.
    for route in ["route-a", "route-b"] {
        gateway
            .sim
            .queue_faults(route, "no-such-model=deepseek", 1)
            .unwrap();
    }
    let answer = gateway.chat(&key, &body).await;
    assert_eq!(answer.failure(), (502, "upstream_error".to_owned()));
    assert_eq!(gateway.frozen(&key).await, 0);
    gateway.verify().await;
}

/// All routes of a model have the same context window, so no other route can take the prompt.
#[tokio::test]
async fn a_prompt_that_is_too_long_is_not_tried_elsewhere() {
    let (gateway, key) = two_routes().await;
    for vendor in sim::context_overflow_vendors() {
        for stream in [false, true] {
            gateway.sim.forget_calls();
            let faults = format!("context-overflow={vendor}");
            gateway.sim.queue_faults("route-a", &faults, 1).unwrap();
            let more = json!({ "model": "maker/two", "stream": stream });
            let answer = gateway.chat(&key, &with(ask("hello"), &more)).await;
            let expected = (400, "context_length_exceeded".to_owned());
            assert_eq!(answer.failure(), expected, "{vendor} {stream}");
            assert_eq!(tried(&gateway), (1, 0), "{vendor} {stream}");
        }
    }
    assert_eq!(gateway.usage(&key).await, 0);
    assert_eq!(gateway.frozen(&key).await, 0);
}

/// Clients shorten the conversation when they recognise the code or, if their vendor has none, the text.
#[tokio::test]
async fn clients_of_every_dialect_know_a_prompt_that_is_too_long() {
    let (gateway, key) = GatewayBuilder::default().paired("sim-chat").await;
    for (index, vendor) in sim::context_overflow_vendors().enumerate() {
        let upstream = Dialect::ALL[index % Dialect::ALL.len()];
        for caller in Dialect::ALL {
            let faults = format!("context-overflow={vendor}");
            gateway.sim.queue_faults("sim-chat", &faults, 1).unwrap();
            let body = caller.ask("hello");
            let call = caller.call(&key.secret, &model_via(upstream), body, index % 2 == 0);
            let answer = gateway.send(&call).await;
            let expected = (400, "context_length_exceeded".to_owned());
            assert_eq!(caller.failure(&answer), expected, "{caller:?} {vendor}");
            let error = &answer.json()["error"];
            let message = error["message"].as_str().unwrap();
            match caller {
                Dialect::Messages => {
                    assert!(message.contains("prompt is too long"), "{message}");
                    assert_eq!(error["type"], "invalid_request_error");
                }
                Dialect::Generate => {
                    assert!(message.contains("exceeds the maximum number of tokens"));
                    assert_eq!(error["status"], "INVALID_ARGUMENT");
                }
                Dialect::Chat | Dialect::Responses | Dialect::Interactions => {}
            }
        }
    }
    assert_eq!(gateway.usage(&key).await, 0);
}

/// A model whose channel is disabled by a refused credential still exists: the answer is 503 with `retry-after`.
#[tokio::test]
async fn a_model_whose_channel_is_out_is_unavailable_in_every_dialect() {
    let (gateway, key) = GatewayBuilder::default().paired("sim-chat").await;
    for dialect in Dialect::ALL {
        let model = model_via(dialect);
        gateway
            .sim
            .queue_faults("sim-chat", "status=401", 1)
            .unwrap();
        let call = dialect.call(&key.secret, &model, dialect.ask("hello"), false);
        let answer = gateway.send(&call).await;
        let expected = (502, "upstream_error".to_owned());
        assert_eq!(dialect.failure(&answer), expected, "{dialect:?}");
        let calls = gateway.upstream_calls();
        for stream in [false, true] {
            let call = dialect.call(&key.secret, &model, dialect.ask("hello"), stream);
            let answer = gateway.send(&call).await;
            let expected = (503, "service_unavailable".to_owned());
            assert_eq!(dialect.failure(&answer), expected, "{dialect:?} {stream}");
            let wait: u32 = answer.header("retry-after").unwrap().parse().unwrap();
            assert!((1..=60).contains(&wait), "{dialect:?}: {wait}");
        }
        assert_eq!(
            gateway.upstream_calls(),
            calls,
            "{dialect:?}: nobody is asked"
        );
        let shown = gateway.get(&key, &format!("/v1/models/{model}")).await;
        assert_eq!(shown.failure(), (503, "service_unavailable".to_owned()));
    }
    assert_eq!(gateway.usage(&key).await, 0);
    let unknown = gateway.get(&key, "/v1/models/maker/none").await;
    assert_eq!(unknown.failure(), (404, "model_not_found".to_owned()));
}
