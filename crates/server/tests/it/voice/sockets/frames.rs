//! Frames of a session: every byte is relayed, and nothing identifies the upstream.

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::http::HeaderName;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

use super::echo_upstream::{EchoUpstream, SessionBehaviour};
use super::{bearer, closed, connect, connect_with, settled};
use crate::harness::{GatewayBuilder, Key, TestGateway, within};

const TARGET: &str = "/v1/realtime?model=maker/echo";

async fn gateway(behaviour: SessionBehaviour) -> (EchoUpstream, TestGateway, Key) {
    let echo = EchoUpstream::start(behaviour).await;
    let (gateway, key) = GatewayBuilder::default()
        .entries(&echo.entries())
        .funded()
        .await;
    (echo, gateway, key)
}

#[tokio::test]
async fn frames_pass_unchanged_both_ways() {
    let (_echo, gateway, key) = gateway(SessionBehaviour::Echoes).await;
    let mut socket = connect(&gateway, &key, TARGET).await;
    let large: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    let frames = [
        Message::text("{ \"type\" : \"unknown.event\",\t\"x\":1.500,\"é\":\"\\u00e9\" }"),
        Message::text("not json \u{1f600}"),
        Message::text(""),
        Message::binary(Vec::new()),
        Message::binary(vec![0, 255, 128, 10]),
        Message::binary(large),
        Message::text("x".repeat(1_000_000)),
        Message::text(r#"{"type":"response.done","session":{"model":"echo-secret-1"}}"#),
    ];
    // All frames are sent at once, independent of how fast they are read.
    let (mut sink, mut stream) = socket.split();
    let sent = frames.clone();
    let sending = tokio::spawn(async move {
        for frame in sent {
            sink.send(frame).await.unwrap();
        }
        sink
    });
    for frame in frames {
        let echoed = within("a frame", stream.next()).await.unwrap().unwrap();
        assert_eq!(echoed, frame);
    }
    socket = sending.await.unwrap().reunite(stream).unwrap();
    socket.send(Message::Ping("p".into())).await.unwrap();
    let pong = within("a pong", socket.next()).await.unwrap().unwrap();
    assert_eq!(pong, Message::Pong("p".into()));
    socket.close(None).await.unwrap();
    settled(&gateway, &key).await;
    gateway.verify().await;
}

#[tokio::test]
async fn the_models_name_alone_is_changed() {
    let (_echo, gateway, key) = gateway(SessionBehaviour::Echoes).await;
    let mut socket = connect(&gateway, &key, TARGET).await;
    // The echo returns the frame as if the upstream had written it.
    let created =
        r#"{ "type":"session.created","session":{"n":1.50,"model": "echo-secret-1" },"a":[ ]}"#;
    socket.send(Message::text(created)).await.unwrap();
    let frame = within("a frame", socket.next()).await.unwrap().unwrap();
    let public = created.replace("echo-secret-1", "maker/echo");
    assert_eq!(frame, Message::text(public));
}

/// An upstream with other limits would read the settings, so they get an error frame, and the session continues.
#[tokio::test]
async fn settings_that_we_cannot_read_are_not_passed_on() {
    let (_echo, gateway, key) = gateway(SessionBehaviour::Echoes).await;
    let mut socket = connect(&gateway, &key, TARGET).await;
    let settings = r#"{"type":"session.update","session":{"resumption":{"enabled":true},"#;
    let deep = format!(
        r#"{settings}"x":{}1{}}}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    let comma = format!("{settings}}}}}");
    for frame in [
        Message::text(&deep),
        Message::binary(deep.into_bytes()),
        Message::text(comma),
    ] {
        socket.send(frame).await.unwrap();
        let error = within("an error", socket.next()).await.unwrap().unwrap();
        let error: Value = serde_json::from_str(error.to_text().unwrap()).unwrap();
        assert_eq!(error["type"], "error", "{error}");
        assert_eq!(error["error"]["type"], "invalid_request_error", "{error}");
        assert_eq!(error["error"]["code"], "invalid_request", "{error}");
    }
    let next = Message::text(r#"{"type":"session.update","session":{"voice":"eve"}}"#);
    socket.send(next.clone()).await.unwrap();
    let echoed = within("a frame", socket.next()).await.unwrap().unwrap();
    assert_eq!(echoed, next);
}

/// Traces are stored in the operator's account, which all callers share, and the upstream does not know the public id of
/// the model. Some SDKs always send both.
#[tokio::test]
async fn traces_and_the_public_id_do_not_reach_the_upstream() {
    let (_echo, gateway, key) = gateway(SessionBehaviour::Echoes).await;
    let mut socket = connect(&gateway, &key, TARGET).await;
    let asked = r#"{"type":"session.update","session":{"model":"maker/echo","voice":"eve","tracing":"auto","n":1.50}}"#;
    let passed = asked
        .replace(r#","tracing":"auto""#, "")
        .replace(r#""model":"maker/echo","#, "");
    for (frame, expected) in [
        (Message::text(asked), Message::text(&passed)),
        (
            Message::binary(asked.as_bytes().to_vec()),
            Message::binary(passed.as_bytes().to_vec()),
        ),
    ] {
        socket.send(frame).await.unwrap();
        let echoed = within("a frame", socket.next()).await.unwrap().unwrap();
        assert_eq!(echoed, expected);
    }
}

#[tokio::test]
async fn nothing_of_the_caller_reaches_the_upstream_but_its_query_without_keys() {
    let (echo, gateway, key) = gateway(SessionBehaviour::Echoes).await;
    let mut headers = bearer(&key);
    for (name, value) in [
        ("cookie", "a=b"),
        ("x-forwarded-for", "10.0.0.1"),
        ("sec-websocket-extensions", "permessage-deflate"),
        ("sec-websocket-protocol", "realtime"),
        ("openai-beta", "realtime=v1"),
    ] {
        headers.insert(name, value.parse().unwrap());
    }
    let secret = &key.secret;
    let target = format!("{TARGET}&key={secret}&voice=a%20b&api_key={secret}&note={secret}");
    let mut socket = connect_with(&gateway, headers, &target).await.unwrap();
    socket.close(None).await.unwrap();
    let (target, headers) = echo.handshake();
    assert_eq!(target, "/v1/realtime?model=echo-secret-1&voice=a%20b");
    let mut names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    let said = headers["authorization"].to_str().unwrap();
    assert!(!said.contains(&key.secret));
    names.retain(|name| !["host", "user-agent", "accept", "accept-encoding"].contains(name));
    assert_eq!(
        names,
        [
            "authorization",
            "connection",
            "sec-websocket-key",
            "sec-websocket-version",
            "upgrade",
        ]
    );
}

#[tokio::test]
async fn closes_pass_with_their_codes() {
    let (echo, gateway, key) = gateway(SessionBehaviour::Echoes).await;
    let mut socket = connect(&gateway, &key, TARGET).await;
    let frame = CloseFrame {
        code: 4001.into(),
        reason: "I am done".into(),
    };
    socket.close(Some(frame.clone())).await.unwrap();
    assert_eq!(echo.closed().await, Some(frame));

    for (code, expected) in [(4002, 4002), (1000, 1000), (1012, 1012)] {
        let (_echo, gateway, key) = self::gateway(SessionBehaviour::Closes(code)).await;
        let mut socket = connect(&gateway, &key, TARGET).await;
        socket.send(Message::text("x")).await.unwrap();
        let (code, reason) = closed(&mut socket).await;
        assert_eq!(code, expected);
        assert!(reason.starts_with("over at"), "{reason}");
        assert!(
            !reason.contains("secret") && !reason.contains("inner"),
            "{reason}"
        );
        settled(&gateway, &key).await;
    }
}
