//! The hold of a session grows in steps. When a step is refused, the session ends.

use std::time::{Duration, Instant};

use futures_util::SinkExt as _;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use super::{
    ENTRIES, REALTIME, SPEECH, Socket, TRANSCRIPT, closed, connect, gateway, gateway_with_balance,
    refusal, say, settled, until,
};
use crate::harness::{GatewayBuilder, eventually};

/// Sends this many seconds of audio, one second in each frame.
async fn send_audio(socket: &mut Socket, seconds: usize) {
    for _ in 0..seconds {
        // A session that has ended accepts no more frames.
        let _ = socket.send(Message::binary(vec![0; 8_000])).await;
    }
}

#[tokio::test]
async fn time_that_cannot_be_paid_ends_the_session_exactly_there() {
    // The balance is enough for seven seconds.
    let (gateway, key) = gateway_with_balance("0.07").await;
    let began = Instant::now();
    let mut socket = connect(&gateway, &key, REALTIME).await;
    let error = until(&mut socket, "error").await;
    assert_eq!(error["error"]["code"], "insufficient_quota");
    assert_eq!(error["code"], "insufficient_quota");
    assert!(began.elapsed() >= Duration::from_secs(7));
    let (code, reason) = closed(&mut socket).await;
    assert_eq!((code, reason.as_str()), (1008, "insufficient_quota"));
    assert_eq!(settled(&gateway, &key).await, 70_000);
    gateway.verify().await;
    let refused = (402, "insufficient_quota".to_owned());
    assert_eq!(refusal(&gateway, &key, REALTIME).await, refused);
}

#[tokio::test]
async fn audio_that_cannot_be_paid_is_not_relayed() {
    let (gateway, key) = gateway_with_balance("0.0075").await;
    let mut socket = connect(&gateway, &key, TRANSCRIPT).await;
    send_audio(&mut socket, 12).await;
    assert_eq!(closed(&mut socket).await.0, 1008);
    assert_eq!(settled(&gateway, &key).await, 7_000);
    let usage = eventually("the upstream's session is over", async || {
        gateway.sim.calls()[0].session_usage
    })
    .await;
    assert_eq!(usage.heard_us, 7_000_000);
    gateway.verify().await;
}

#[tokio::test]
async fn a_keys_own_limit_ends_the_session_too() {
    let gateway = GatewayBuilder::default().entries(ENTRIES).start().await;
    gateway.wallet("w", &["--balance", "1"]).await;
    // The limit is enough for a hundred characters.
    let key = gateway.key("w", &["--limit", "0.0015"]).await;
    let mut socket = connect(&gateway, &key, SPEECH).await;
    say(
        &mut socket,
        &json!({"type": "text.delta", "delta": "x".repeat(60)}),
    )
    .await;
    until(&mut socket, "audio.delta").await;
    say(
        &mut socket,
        &json!({"type": "text.delta", "delta": "x".repeat(60)}),
    )
    .await;
    let error = until(&mut socket, "error").await;
    assert_eq!(error["error"]["code"], "key_limit_reached");
    assert_eq!(closed(&mut socket).await.0, 1008);
    assert_eq!(settled(&gateway, &key).await, 60 * 15);
    gateway.verify().await;
}

#[tokio::test]
async fn the_steps_of_a_session_add_up_to_its_price() {
    let (gateway, key) = gateway().await;
    let mut socket = connect(&gateway, &key, TRANSCRIPT).await;
    send_audio(&mut socket, 100).await;
    say(&mut socket, &json!({"type": "audio.done"})).await;
    until(&mut socket, "transcript.done").await;
    assert_eq!(closed(&mut socket).await.0, 1000);
    assert_eq!(settled(&gateway, &key).await, 100_000);
    gateway.verify().await;
    let proof = gateway.cli_json(&["ledger", "reprice"]).await;
    assert_eq!(proof["ok"], true);
    assert_eq!(proof["repriced_micro"], "100000");
    assert!(proof["settlements"].as_u64().unwrap() > 2, "{proof}");
    let report = gateway
        .cli_json(&["ledger", "report", "--by", "model"])
        .await;
    assert_eq!(report["model"], "maker/voice");
    assert_eq!(
        (&report["calls"], &report["charge_micro"]),
        (&json!(1), &json!("100000"))
    );
    // Each entry has the upstream cost of its own step.
    assert_eq!(
        (&report["cost_micro"], &report["margin_micro"]),
        (&json!("10000"), &json!("90000"))
    );
    assert_eq!(report["costed_entries"], proof["settlements"]);
}

/// S11: a crash loses at most one step, and booked steps stay.
#[tokio::test]
async fn a_node_that_is_killed_loses_one_step_at_most() {
    let (mut gateway, key) = gateway().await;
    let mut socket = connect(&gateway, &key, TRANSCRIPT).await;
    send_audio(&mut socket, 100).await;
    let seen = eventually("all but a step is booked", async || {
        let usage = gateway.usage(&key).await;
        (usage >= 70_000).then_some(usage)
    })
    .await;
    gateway.kill();
    gateway.restart().await;
    assert_eq!(gateway.frozen(&key).await, 0);
    let usage = gateway.usage(&key).await;
    assert!((seen..=100_000).contains(&usage), "{seen} {usage}");
    gateway.verify().await;
}

/// K2: a session ends at the next step after its key is disabled.
#[tokio::test]
async fn a_disabled_key_ends_its_session_at_the_next_step() {
    let (gateway, key) = gateway().await;
    let mut socket = connect(&gateway, &key, TRANSCRIPT).await;
    send_audio(&mut socket, 1).await;
    gateway.cli_json(&["key", "disable", &key.id]).await;
    send_audio(&mut socket, 40).await;
    let error = until(&mut socket, "error").await;
    assert_eq!(error["error"]["code"], "invalid_api_key");
    assert_eq!(closed(&mut socket).await.0, 1008);
    gateway.cli_json(&["key", "enable", &key.id]).await;
    let usage = settled(&gateway, &key).await;
    assert!((1_000..=30_000).contains(&usage), "{usage}");
    gateway.verify().await;
}

#[tokio::test]
async fn an_open_session_counts_against_its_keys_concurrency() {
    let gateway = GatewayBuilder::default().entries(ENTRIES).start().await;
    gateway.wallet("w", &["--balance", "1"]).await;
    let key = gateway.key("w", &["--concurrency", "1"]).await;
    let mut socket = connect(&gateway, &key, TRANSCRIPT).await;
    let refused = (429, "concurrency_limit_exceeded".to_owned());
    assert_eq!(refusal(&gateway, &key, TRANSCRIPT).await, refused);
    socket.close(None).await.unwrap();
    assert_eq!(settled(&gateway, &key).await, 0);
    connect(&gateway, &key, TRANSCRIPT).await;
}
