//! Conversations with the simulated upstream, and their cost.

use std::time::{Duration, Instant};

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::{REALTIME, SPEECH, TRANSCRIPT, ceil, closed, connect, gateway, say, settled, until};
use crate::harness::{TestGateway, eventually, within};

/// Waits until the session is over, and returns the usage that the upstream has counted.
async fn upstream_usage(gateway: &TestGateway) -> sim::SessionUsage {
    eventually("the upstream's session is over", async || {
        gateway
            .sim
            .calls()
            .last()
            .and_then(|call| call.session_usage)
    })
    .await
}

fn push_to_talk() -> serde_json::Value {
    json!({"type": "session.update", "session": {"turn_detection": null}})
}

fn text(words: &str) -> serde_json::Value {
    json!({"type": "conversation.item.create", "item": {"type": "message", "role": "user",
        "content": [{"type": "input_text", "text": words}]}})
}

#[tokio::test]
async fn push_to_talk_costs_its_audio_both_ways_and_its_text_inputs() {
    let (gateway, key) = gateway().await;
    let began = Instant::now();
    let target = "/v1/realtime?model=maker%2Fvoice&x=%20y&reasoning.effort=none";
    let mut socket = connect(&gateway, &key, target).await;
    let created = until(&mut socket, "session.created").await;
    assert_eq!(created["session"]["model"], "maker/voice");
    say(&mut socket, &push_to_talk()).await;
    let updated = until(&mut socket, "session.updated").await;
    assert_eq!(updated["session"]["model"], "maker/voice");
    // Until push-to-talk is active, the session is billed by time. `active` is an upper bound of this time.
    let active = began.elapsed();
    // Half a second in JSON, and half a second in a binary frame.
    let audio = "AAAA".repeat(8_000);
    say(
        &mut socket,
        &json!({"type": "input_audio_buffer.append", "audio": audio}),
    )
    .await;
    socket.send(Message::binary(vec![0; 24_000])).await.unwrap();
    say(&mut socket, &text("Hi")).await;
    say(
        &mut socket,
        &json!({"type": "conversation.item.create",
        "item": {"type": "function_call_output", "call_id": "c", "output": "1"}}),
    )
    .await;
    say(&mut socket, &json!({"type": "response.create"})).await;
    until(&mut socket, "response.done").await;
    // A second response, with audio in binary frames of another format.
    say(
        &mut socket,
        &json!({"type": "session.update", "session": {"audio": {"output":
            {"transport": "binary", "format": {"type": "audio/pcmu"}}}}}),
    )
    .await;
    until(&mut socket, "session.updated").await;
    say(&mut socket, &json!({"type": "response.create"})).await;
    let mut sound = 0;
    while sound < 5_760 {
        let message = within("sound", socket.next()).await.unwrap().unwrap();
        if let Message::Binary(piece) = message {
            sound += piece.len();
        }
    }
    socket.close(None).await.unwrap();
    let cost = settled(&gateway, &key).await;
    let usage = upstream_usage(&gateway).await;
    // The audio of "You said: Hi" takes 720 ms.
    assert_eq!((usage.heard_us, usage.spoken_us), (1_000_000, 1_440_000));
    assert_eq!(usage.text_inputs, 1);
    let sounded = Duration::from_micros(usage.heard_us + usage.spoken_us);
    let seconds = (cost - 4_000) / 10_000;
    assert_eq!((cost - 4_000) % 10_000, 0, "{cost}");
    assert!(
        (ceil(sounded)..=ceil(sounded + active)).contains(&seconds),
        "{cost}"
    );
    let call = gateway.sim.calls().remove(0);
    assert_eq!(
        call.query.as_deref(),
        Some("model=sim-voice-secret&x=%20y&reasoning.effort=none")
    );
    gateway.verify().await;
}

#[tokio::test]
async fn voice_activity_costs_its_time() {
    let (gateway, key) = gateway().await;
    let outer = Instant::now();
    let mut socket = connect(&gateway, &key, REALTIME).await;
    until(&mut socket, "session.created").await;
    let inner = Instant::now();
    // One second of audio makes a turn.
    say(
        &mut socket,
        &json!({"type": "input_audio_buffer.append", "audio": "AAAA".repeat(16_000)}),
    )
    .await;
    until(&mut socket, "input_audio_buffer.speech_stopped").await;
    let done = until(&mut socket, "response.done").await;
    assert_eq!(done["response"]["status"], "completed");
    let least = ceil(inner.elapsed());
    let done = CloseFrame {
        code: CloseCode::Normal,
        reason: "".into(),
    };
    socket.close(Some(done)).await.unwrap();
    assert_eq!(closed(&mut socket).await.0, 1000);
    let most = ceil(outer.elapsed());
    let cost = settled(&gateway, &key).await;
    assert_eq!(cost % 10_000, 0);
    assert!(
        (least..=most).contains(&(cost / 10_000)),
        "{cost} {least} {most}"
    );
    gateway.verify().await;
}

#[tokio::test]
async fn functions_are_called_and_answered() {
    let (gateway, key) = gateway().await;
    let mut socket = connect(&gateway, &key, REALTIME).await;
    say(
        &mut socket,
        &json!({"type": "session.update", "session": {"turn_detection": null,
        "tools": [{"type": "function", "name": "weather", "parameters": {}}]}}),
    )
    .await;
    say(&mut socket, &text("How is the weather?")).await;
    say(&mut socket, &json!({"type": "response.create"})).await;
    let call = until(&mut socket, "response.function_call_arguments.done").await;
    assert_eq!(call["name"], "weather");
    until(&mut socket, "response.done").await;
    socket.close(None).await.unwrap();
    settled(&gateway, &key).await;
}

#[tokio::test]
async fn what_would_be_kept_is_refused_and_the_session_goes_on() {
    let (gateway, key) = gateway().await;
    let mut socket = connect(&gateway, &key, REALTIME).await;
    for (event, param) in [
        (
            json!({"type": "session.update", "event_id": "e1", "session": {"resumption": {"enabled": true}}}),
            "session.resumption",
        ),
        (
            json!({"type": "response.create", "event_id": "e1", "response": {"tools": [{"type": "file_search"}]}}),
            "session.tools",
        ),
    ] {
        say(&mut socket, &event).await;
        let error = until(&mut socket, "error").await;
        assert_eq!(error["error"]["code"], "stateful_not_supported");
        assert_eq!(error["error"]["param"], param);
        assert_eq!(error["error"]["event_id"], "e1");
        assert!(error["event_id"].as_str().unwrap().starts_with("event_"));
    }
    say(&mut socket, &push_to_talk()).await;
    let updated = until(&mut socket, "session.updated").await;
    assert!(updated["session"].get("resumption").is_none());
    socket.close(None).await.unwrap();
    settled(&gateway, &key).await;
}

#[tokio::test]
async fn streamed_speech_and_transcripts_cost_what_was_sent() {
    let (gateway, key) = gateway().await;
    let mut socket = connect(&gateway, &key, SPEECH).await;
    say(
        &mut socket,
        &json!({"type": "text.delta", "delta": "Grüße!"}),
    )
    .await;
    assert!(until(&mut socket, "audio.delta").await["delta"].is_string());
    say(&mut socket, &json!({"type": "text.clear"})).await;
    until(&mut socket, "audio.clear").await;
    say(&mut socket, &json!({"type": "text.delta", "delta": "😀"})).await;
    say(&mut socket, &json!({"type": "text.done"})).await;
    until(&mut socket, "audio.done").await;
    socket.close(None).await.unwrap();
    assert_eq!(settled(&gateway, &key).await, 7 * 15);
    assert_eq!(upstream_usage(&gateway).await.characters, 7);
    let call = gateway.sim.calls().remove(0);
    assert_eq!(call.query.as_deref(), Some("language=en&codec=pcm"));

    let mut socket = connect(&gateway, &key, TRANSCRIPT).await;
    until(&mut socket, "transcript.created").await;
    for _ in 0..11 {
        socket.send(Message::binary(vec![0; 1_600])).await.unwrap();
    }
    say(&mut socket, &json!({"type": "audio.done"})).await;
    let done = until(&mut socket, "transcript.done").await;
    assert_eq!(done["duration"], json!(2.2));
    assert_eq!(closed(&mut socket).await.0, 1000);
    assert_eq!(settled(&gateway, &key).await, 7 * 15 + 3_000);
    assert_eq!(upstream_usage(&gateway).await.heard_us, 2_200_000);
    let call = gateway.sim.calls().remove(1);
    assert_eq!(
        call.query.as_deref(),
        Some("model=sim-voice-secret&sample_rate=8000&encoding=mulaw")
    );
    gateway.verify().await;
}
