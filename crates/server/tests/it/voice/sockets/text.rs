//! Text tokens of realtime sessions: they need a price, or are refused.

use futures_util::StreamExt as _;
use serde_json::{Value, json};

use super::echo_upstream::{EchoUpstream, SessionBehaviour};
use super::{closed, connect, refusal, say, settled, until};
use crate::harness::{GatewayBuilder, Key, TestGateway, within};

/// Text costs 1,000 micro-credits per token, and audio almost nothing.
const ENTRIES: &str = r#"
[[model]]
id = "maker/priced"
kind = "audio"
routes = [{ channel = "main", model = "sim-voice-secret" }]
price = { realtime_minute = "0.000001", input = "1000", output = "1000" }
[[model]]
id = "maker/unpriced"
kind = "audio"
routes = [{ channel = "main", model = "sim-voice-secret" }]
price = { realtime_minute = "0.000001", stt_stream_second = "0.001" }
"#;
const PRICED: &str = "/v1/realtime?model=maker/priced";
const UNPRICED: &str = "/v1/realtime?model=maker/unpriced";

async fn gateway_with_balance(balance: &str) -> (TestGateway, Key) {
    let gateway = GatewayBuilder::default().entries(ENTRIES).start().await;
    gateway.wallet("w", &["--balance", balance]).await;
    let key = gateway.key("w", &[]).await;
    (gateway, key)
}

fn text_only(instructions: &str) -> Value {
    json!({"type": "session.update", "session": {"turn_detection": null,
        "output_modalities": ["text"], "instructions": instructions}})
}

#[tokio::test]
async fn text_costs_what_responses_report_of_it() {
    let (gateway, key) = gateway_with_balance("10").await;
    let mut socket = connect(&gateway, &key, PRICED).await;
    say(&mut socket, &text_only("Be brief.")).await;
    let (mut tokens, mut input, mut output) = (0, 0, 0);
    for _ in 0..3 {
        let create =
            json!({"type": "response.create", "response": {"instructions": "Speak of rain."}});
        say(&mut socket, &create).await;
        let done = until(&mut socket, "response.done").await;
        let usage = &done["response"]["usage"];
        assert!(usage["output_tokens"].as_u64().unwrap() > 0, "{usage}");
        tokens += usage["total_tokens"].as_u64().unwrap();
        input += usage["input_tokens"].as_u64().unwrap();
        output += usage["output_tokens"].as_u64().unwrap();
    }
    socket.close(None).await.unwrap();
    let cost = settled(&gateway, &key).await;
    // A second of the session costs less than one micro-credit, which is rounded up once.
    assert!(
        (tokens * 1_000..=tokens * 1_000 + 1).contains(&cost),
        "{tokens} {cost}"
    );
    gateway.verify().await;
    let proof = gateway.cli_json(&["ledger", "reprice"]).await;
    assert_eq!(
        (&proof["ok"], &proof["repriced_micro"]),
        (&json!(true), &json!(cost.to_string()))
    );
    // Each entry of the session stores the usage since the session's beginning. A report counts this usage once, and
    // adds the charges of all entries.
    assert!(proof["settlements"].as_u64().unwrap() > 1, "{proof}");
    let report = gateway
        .cli_json(&["ledger", "report", "--by", "model"])
        .await;
    assert_eq!(
        (&report["input"], &report["output"]),
        (&json!(input), &json!(output)),
        "{report}"
    );
    assert_eq!(
        (&report["calls"], &report["charge_micro"]),
        (&json!(1), &json!(cost.to_string()))
    );
}

/// If a response cannot be paid for, the session ends before its text reaches the caller.
#[tokio::test]
async fn text_that_cannot_be_paid_ends_the_session() {
    let (gateway, key) = gateway_with_balance("0.05").await;
    let mut socket = connect(&gateway, &key, PRICED).await;
    say(&mut socket, &text_only(&"be brief ".repeat(200))).await;
    say(&mut socket, &json!({"type": "response.create"})).await;
    let error = loop {
        let message = within("an error", socket.next()).await.unwrap().unwrap();
        let event: Value = serde_json::from_str(message.to_text().unwrap()).unwrap();
        let kind = event["type"].as_str().unwrap();
        assert!(!kind.starts_with("response.output_text"), "{event}");
        if kind == "error" {
            break event;
        }
    };
    assert_eq!(error["error"]["code"], "insufficient_quota");
    assert_eq!(closed(&mut socket).await.0, 1008);
    assert!(settled(&gateway, &key).await <= 50_000);
    gateway.verify().await;
}

/// If the caller leaves before the usage report, the counted text is charged.
#[tokio::test]
async fn text_of_a_response_that_never_reports_is_counted() {
    let echo = EchoUpstream::start(SessionBehaviour::Echoes).await;
    let entries = echo.entries().replace(
        "price = { ",
        "price = { input = \"1000\", output = \"1000\", ",
    );
    let (gateway, key) = GatewayBuilder::default().entries(&entries).funded().await;
    let mut socket = connect(&gateway, &key, "/v1/realtime?model=maker/echo").await;
    let (instructions, delta) = ("be brief ".repeat(200), "or long ".repeat(100));
    say(&mut socket, &text_only(&instructions)).await;
    // The upstream sends all events back, so the caller chooses the events of the response.
    let kind = "response.output_text.delta";
    say(&mut socket, &json!({"type": "response.created"})).await;
    say(&mut socket, &json!({"type": kind, "delta": delta})).await;
    until(&mut socket, kind).await;
    drop(socket);
    let tokens = [instructions, delta].map(|text| protocol::count::tokens(text.as_bytes()));
    let cost = settled(&gateway, &key).await;
    assert!(
        cost >= tokens.iter().sum::<u64>() * 1_000,
        "{cost}: {tokens:?}"
    );
    gateway.verify().await;
}

/// Images cost what responses report of them: at the price of images, or at that of text.
#[tokio::test]
async fn images_of_a_session_are_charged() {
    let usage = json!({"input_tokens": 870, "output_tokens": 0,
        "input_token_details": {"text_tokens": 0, "audio_tokens": 70, "image_tokens": 800},
        "output_token_details": {"text_tokens": 0, "audio_tokens": 0}});
    for (price, per_token) in [
        (r#"input = "1000", output = "1000""#, 1_000),
        (
            r#"input = "1000", output = "1000", image_input = "2000""#,
            2_000,
        ),
    ] {
        let echo = EchoUpstream::start(SessionBehaviour::Echoes).await;
        let entries = echo.entries();
        let entries = entries.replace("price = { ", &format!("price = {{ {price}, "));
        let (gateway, key) = GatewayBuilder::default().entries(&entries).funded().await;
        let mut socket = connect(&gateway, &key, "/v1/realtime?model=maker/echo").await;
        let push_to_talk = json!({"type": "session.updated", "session": {"turn_detection": null}});
        say(&mut socket, &push_to_talk).await;
        // The upstream sends all events back, so the caller chooses the events of the response.
        say(&mut socket, &json!({"type": "response.created"})).await;
        let done = json!({"type": "response.done", "response": {"usage": usage}});
        say(&mut socket, &done).await;
        until(&mut socket, "response.done").await;
        socket.close(None).await.unwrap();
        let cost = settled(&gateway, &key).await;
        let images = 800 * per_token;
        // The session is billed by time until its first event.
        assert!(
            (images..images + 100_000).contains(&cost),
            "{cost} at {price}"
        );
        gateway.verify().await;
    }
}

#[tokio::test]
async fn sessions_whose_text_has_no_price_are_named_and_can_be_refused() {
    let (gateway, key) = gateway_with_balance("1").await;
    let checked = gateway.cli_json(&["check"]).await;
    let notes = checked["notes"].as_array().unwrap();
    let about: Vec<_> = notes.iter().map(|note| &note["id"]).collect();
    assert!(about.contains(&&json!("maker/unpriced")), "{checked}");
    assert!(!about.contains(&&json!("maker/priced")), "{checked}");
    let mut socket = connect(&gateway, &key, UNPRICED).await;
    socket.close(None).await.unwrap();
    drop(gateway);

    let builder = GatewayBuilder::default().entries(ENTRIES);
    let (gateway, key) = builder
        .setting("ledger", "refuse_unpriced_text = true")
        .funded()
        .await;
    let refused = (400, "model_not_supported".to_owned());
    assert_eq!(refusal(&gateway, &key, UNPRICED).await, refused);
    let mut socket = connect(&gateway, &key, PRICED).await;
    socket.close(None).await.unwrap();
    let transcript = "/v1/stt?model=maker/unpriced";
    connect(&gateway, &key, transcript).await;
}
