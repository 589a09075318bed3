//! Sessions that end without a regular close.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio_tungstenite::tungstenite::Message;

use super::echo_upstream::{EchoUpstream, SessionBehaviour};
use super::{
    ENTRIES, REALTIME, SPEECH, Socket, TRANSCRIPT, closed, connect, gateway, say, settled, until,
};
use crate::harness::{Connection, GatewayBuilder, Request, eventually, signal, within};

#[tokio::test]
async fn an_upstream_that_vanishes_ends_the_session_with_1011() {
    let (gateway, key) = gateway().await;
    let sim = &gateway.sim;
    sim.queue_faults("sim-voice-secret", "cut=content", 1)
        .unwrap();
    let mut socket = connect(&gateway, &key, REALTIME).await;
    until(&mut socket, "session.created").await;
    say(&mut socket, &json!({"type": "response.create"})).await;
    let error = until(&mut socket, "error").await;
    assert_eq!(error["error"]["code"], "upstream_error");
    assert_eq!(closed(&mut socket).await.0, 1011);
    let cost = settled(&gateway, &key).await;
    assert!(cost >= 10_000 && cost % 10_000 == 0, "{cost}");
    gateway.verify().await;
}

#[tokio::test]
async fn a_caller_that_vanishes_settles_what_it_used() {
    let (gateway, key) = gateway().await;
    let mut socket = connect(&gateway, &key, SPEECH).await;
    say(
        &mut socket,
        &json!({"type": "text.delta", "delta": "Hello"}),
    )
    .await;
    until(&mut socket, "audio.delta").await;
    drop(socket);
    assert_eq!(settled(&gateway, &key).await, 5 * 15);
    gateway.verify().await;
}

#[tokio::test]
async fn a_shutdown_ends_sessions_with_1001() {
    let (mut gateway, key) = GatewayBuilder::default()
        .setting("timeouts", "shutdown_drain_ms = 300")
        .entries(ENTRIES)
        .funded()
        .await;
    let mut socket = connect(&gateway, &key, TRANSCRIPT).await;
    until(&mut socket, "transcript.created").await;
    socket.send(Message::binary(vec![0; 12_000])).await.unwrap();
    signal("TERM", gateway.pid());
    assert_eq!(closed(&mut socket).await.0, 1001);
    assert!(gateway.process().ended().await.success());
    gateway.restart().await;
    assert_eq!(settled(&gateway, &key).await, 2_000);
    gateway.verify().await;
}

#[tokio::test]
async fn messages_that_are_too_large_or_no_text_end_the_session() {
    let (gateway, key) = GatewayBuilder::default()
        .setting("limits", "socket_message_bytes = 100000")
        .entries(ENTRIES)
        .funded()
        .await;
    let mut socket = connect(&gateway, &key, TRANSCRIPT).await;
    let _ = socket.send(Message::binary(vec![0; 100_001])).await;
    assert_eq!(closed(&mut socket).await.0, 1009);
    assert_eq!(settled(&gateway, &key).await, 0);

    let mut socket = connect(&gateway, &key, TRANSCRIPT).await;
    until(&mut socket, "transcript.created").await;
    // A text frame with one byte of invalid UTF-8, masked with zeros.
    let frame = [0x81, 0x81, 0, 0, 0, 0, 0xff];
    socket.get_mut().write_all(&frame).await.unwrap();
    assert_eq!(closed(&mut socket).await.0, 1007);
    assert_eq!(settled(&gateway, &key).await, 0);
}

/// Waits for the end of a session that the client has closed.
async fn ended(socket: &mut Socket) {
    let until_end = async { while let Some(Ok(_)) = socket.next().await {} };
    within("the end", until_end).await;
}

/// The head of a binary frame of a client, which is masked with zeros.
fn binary_head(length: u64, is_final: bool) -> Vec<u8> {
    let mut head = vec![if is_final { 0x82 } else { 0x02 }, 0xff];
    head.extend(length.to_be_bytes());
    head.extend([0; 4]);
    head
}

#[tokio::test]
async fn an_unfinished_message_takes_memory_from_its_key() {
    let (gateway, key) = GatewayBuilder::default()
        .setting("limits", "body_memory_key_bytes = 1000000")
        .entries(ENTRIES)
        .funded()
        .await;
    // The same bytes in one frame, and in small ones with pings between them.
    let whole = [binary_head(8_000_000, true), vec![0; 2_000_000]].concat();
    let mut parts = [binary_head(10_000, false), vec![0; 10_000]].concat();
    let ping = [0x89, 0x80, 0, 0, 0, 0];
    for _ in 0..200 {
        parts.extend(ping);
        let mut part = binary_head(10_000, false);
        part[0] = 0;
        parts.extend(part);
        parts.extend([0; 10_000]);
    }
    for bytes in [whole, parts] {
        let mut socket = connect(&gateway, &key, TRANSCRIPT).await;
        until(&mut socket, "transcript.created").await;
        socket.get_mut().write_all(&bytes).await.unwrap();
        let error = until(&mut socket, "error").await;
        assert_eq!(error["error"]["code"], "concurrency_limit_exceeded");
        let reason = "concurrency_limit_exceeded".to_owned();
        assert_eq!(closed(&mut socket).await, (1013, reason));
        assert_eq!(settled(&gateway, &key).await, 0);
    }

    // Each session frees its memory when it ends, and small messages need none.
    for _ in 0..5 {
        let mut socket = connect(&gateway, &key, TRANSCRIPT).await;
        until(&mut socket, "transcript.created").await;
        socket
            .send(Message::binary(vec![0; 400_000]))
            .await
            .unwrap();
        for _ in 0..20 {
            let audio = Message::binary(vec![0; 64 << 10]);
            socket.send(audio).await.unwrap();
        }
        socket.close(None).await.unwrap();
        ended(&mut socket).await;
    }
    gateway.verify().await;
}

#[tokio::test]
async fn a_slow_message_does_not_end_its_session() {
    // The pauses are thirty times shorter than the longest silence, so that a slow machine does not end the session.
    let (gateway, key) = GatewayBuilder::default()
        .setting("timeouts", "socket_ping_ms = 100")
        .setting("timeouts", "socket_dead_ms = 3000")
        .entries(ENTRIES)
        .funded()
        .await;
    let mut socket = connect(&gateway, &key, TRANSCRIPT).await;
    until(&mut socket, "transcript.created").await;
    // The message takes longer than a silent session may last, and no pong is sent meanwhile.
    let mut message = binary_head(8_000, true);
    message.resize(message.len() + 8_000, 0);
    for part in message.chunks(message.len() / 36) {
        socket.get_mut().write_all(part).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    socket.close(None).await.unwrap();
    ended(&mut socket).await;
    assert_eq!(settled(&gateway, &key).await, 1_000);
}

fn with_short_timeouts() -> GatewayBuilder {
    GatewayBuilder::default()
        .setting("timeouts", "socket_ping_ms = 100")
        .setting("timeouts", "socket_dead_ms = 1500")
}

#[tokio::test]
async fn a_caller_who_answers_no_ping_is_gone() {
    let (gateway, key) = with_short_timeouts().entries(ENTRIES).funded().await;
    let request = Request::get(TRANSCRIPT)
        .bearer(&key.secret)
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA==");
    let mut connection = Connection::open(gateway.address()).await;
    connection.send(&request).await;
    eventually("the session is over", async || {
        let calls = gateway.sim.calls();
        calls.first().and_then(|call| call.session_usage)
    })
    .await;
    assert_eq!(settled(&gateway, &key).await, 0);
}

#[tokio::test]
async fn an_upstream_that_answers_no_ping_is_gone() {
    let echo = EchoUpstream::start(SessionBehaviour::Freezes).await;
    let (gateway, key) = with_short_timeouts()
        .entries(&echo.entries())
        .funded()
        .await;
    let mut socket = connect(&gateway, &key, "/v1/tts?model=maker/echo").await;
    let error = until(&mut socket, "error").await;
    assert_eq!(error["error"]["code"], "upstream_error");
    assert_eq!(closed(&mut socket).await.0, 1011);
    assert_eq!(settled(&gateway, &key).await, 0);
}

#[tokio::test]
async fn a_session_has_a_longest_time() {
    let (gateway, key) = GatewayBuilder::default()
        .setting("timeouts", "socket_session_ms = 900")
        .entries(ENTRIES)
        .funded()
        .await;
    let mut socket = connect(&gateway, &key, TRANSCRIPT).await;
    assert_eq!(closed(&mut socket).await.0, 1000);
    assert_eq!(settled(&gateway, &key).await, 0);
}
