//! Streams whose upstream is silent before it begins to answer: the client gets keep-alives, and later the answer or an
//! error of its protocol (S6, `docs/decisions/005`).

use serde_json::json;

use super::client_gone::input_tokens;
use crate::harness::{
    Connection, Dialect, GatewayBuilder, Key, Request, Streaming, TestGateway, ask, eventually,
    with,
};

/// Models with two routes, of which the first is preferred.
const ENTRIES: &str = r#"
[[channel]]
name = "spare"
preset = "sim"
base_url = "http://SIM/v1"
credential = { file = "upstream-key" }
[[channel]]
name = "chat-alone"
preset = "openai-compatible"
base_url = "http://SIM/v1"
credential = { file = "upstream-key" }
[[model]]
id = "maker/two"
kind = "text"
routes = [
    { channel = "main", model = "route-a" },
    { channel = "spare", model = "route-b", priority = 1 },
]
price = { input = "1.25", output = "10" }
profile = { context_tokens = 400000, max_output_tokens = 128000 }
[[model]]
id = "maker/mixed"
kind = "text"
routes = [
    { channel = "main", model = "route-a" },
    { channel = "chat-alone", model = "route-b", priority = 1 },
]
price = { input = "1.25", output = "10" }
profile = { context_tokens = 400000, max_output_tokens = 128000 }
"#;

async fn gateway() -> (TestGateway, Key) {
    GatewayBuilder::default()
        .entries(ENTRIES)
        .setting("timeouts", "stream_keep_alive_ms = 100")
        .setting("timeouts", "upstream_first_byte_ms = 1000")
        .setting("timeouts", "client_gone_drain_ms = 200")
        .funded()
        .await
}

fn call(dialect: Dialect, key: &Key, model: &str) -> Request {
    let body = dialect.ask("say exactly: at last");
    dialect.call(&key.secret, model, body, true)
}

fn keep_alive(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Messages => "event: ping\n",
        Dialect::Generate => "\n\n",
        _ => ": keep-alive\n",
    }
}

#[tokio::test]
async fn a_stream_begins_while_its_upstream_has_not_answered() {
    let (gateway, key) = gateway().await;
    for dialect in Dialect::ALL {
        let before = gateway.usage(&key).await;
        gateway
            .sim
            .queue_faults("sim-chat", "delay=600ms", 1)
            .unwrap();
        let answer = gateway.send(&call(dialect, &key, "maker/chat")).await.ok();
        let text = answer.text();
        assert!(text.starts_with(keep_alive(dialect)), "{dialect:?} {text}");
        assert!(text.contains("last"), "{dialect:?} {text}");
        assert!(!text.contains("\"error\":{"), "{dialect:?} {text}");
        assert!(gateway.usage(&key).await > before, "{dialect:?}");
    }
    gateway.verify().await;
}

#[tokio::test]
async fn a_stream_that_began_early_ends_with_the_error_of_its_protocol() {
    let (gateway, key) = gateway().await;
    for dialect in Dialect::ALL {
        for (faults, code) in [
            ("hang=head", "upstream_timeout"),
            ("delay=600ms+status=500", "upstream_error"),
            ("delay=600ms+status=400", "upstream_rejected"),
        ] {
            gateway.sim.queue_faults("sim-chat", faults, 1).unwrap();
            let answer = gateway.send(&call(dialect, &key, "maker/chat")).await;
            assert_eq!(answer.status(), 200, "{dialect:?} {faults}");
            let text = answer.text();
            assert!(text.starts_with(keep_alive(dialect)), "{dialect:?} {text}");
            assert!(text.contains(code), "{dialect:?} {faults} {text}");
            assert!(!text.contains("[DONE]"), "{dialect:?} {text}");
        }
    }
    assert_eq!(gateway.usage(&key).await, 0);
    assert_eq!(gateway.frozen(&key).await, 0);
    gateway.verify().await;
}

/// S3: nothing was delivered yet, so another route may answer if it drops the same members as the first route.
#[tokio::test]
async fn another_route_answers_in_a_stream_that_began_early() {
    let (gateway, key) = gateway().await;
    for (model, more, is_answered) in [
        ("maker/two", json!({}), true),
        ("maker/mixed", json!({}), true),
        // A route of the chat dialect would drop `top_k`, but the header that names dropped members can no longer be
        // sent.
        ("maker/mixed", json!({ "top_k": 5 }), false),
    ] {
        gateway
            .sim
            .queue_faults("route-a", "delay=400ms+status=500", 1)
            .unwrap();
        let body = with(Dialect::Messages.ask("say exactly: at last"), &more);
        let request = Dialect::Messages.call(&key.secret, model, body, true);
        let answer = gateway.send(&request).await.ok();
        assert_eq!(answer.header("x-dropped-params"), None, "{model} {more}");
        let text = answer.text();
        assert_eq!(text.contains("last"), is_answered, "{model} {text}");
        assert_eq!(text.contains("event: error"), !is_answered, "{text}");
    }
    gateway.verify().await;
}

/// B2: the upstream may charge for the request, so its caller pays for the input as counted.
#[tokio::test]
async fn a_client_that_leaves_a_stream_before_its_upstream_pays_for_its_input() {
    let (gateway, key) = gateway().await;
    gateway
        .sim
        .queue_faults("sim-chat", "hang=head", 1)
        .unwrap();
    let body = with(ask("hello"), &json!({ "stream": true }));
    let mut connection = Connection::open(gateway.address()).await;
    connection
        .send(&Request::chat(&body).bearer(&key.secret))
        .await;
    let head = connection.head().await.expect("an answer");
    assert_eq!(head.status, 200);
    assert!(gateway.frozen(&key).await > 0);
    Streaming::new(head, connection).leave();
    eventually("the hold to be closed", async || {
        (gateway.frozen(&key).await == 0).then_some(())
    })
    .await;
    // Input costs 1.25 micro-credits per token.
    let charge = (input_tokens(&body) * 5).div_ceil(4);
    assert_eq!(gateway.usage(&key).await, charge);
    gateway.verify().await;
}
