//! Details of HTTP that clients rely on: HEAD, handshakes on endpoints without WebSocket, retry advice.

use std::net::SocketAddr;

use serde_json::json;

use crate::harness::{Connection, Dialect, Http2, Key, Request, TestGateway, ask, take_rest};

const NO_KEY: &str = "sk-tg-none";

/// Paths that GET serves, and some that it refuses.
const TARGETS: [&str; 12] = [
    "/v1/models",
    "/v1/models/maker/chat",
    "/v1/models/maker/none",
    "/v1beta/models",
    "/v1beta/models/maker/chat",
    "/v1/balance",
    "/v1/contents/generations/tasks",
    "/v1/tasks/none",
    "/v1beta/interactions/none",
    "/v1/realtime?model=maker/chat",
    "/v1/tts/voices?model=maker/chat",
    "/v1/nothing",
];

/// Sends HEAD and then GET on one connection. If the answer to HEAD had a body, the client would read that body as the
/// second answer.
async fn assert_head_as_get(address: SocketAddr, target: &str, secret: &str) {
    let ask = |method: &str| Request::new(method, target).bearer(secret);
    let mut connection = Connection::open(address).await;
    connection.send(&ask("HEAD")).await;
    let head = connection.head().await.unwrap();
    connection.send(&ask("GET")).await;
    let got = connection.answer().await;
    assert_eq!(head.status, got.status(), "{target}");
    for name in [
        "content-type",
        "content-length",
        "upgrade",
        "x-should-retry",
    ] {
        assert_eq!(head.header(name), got.header(name), "{target}: {name}");
    }
    assert!(!got.body.is_empty(), "{target}");
}

#[tokio::test]
async fn head_is_get_without_its_body() {
    let (gateway, key) = TestGateway::funded().await;
    for target in TARGETS {
        for secret in [key.secret.as_str(), NO_KEY] {
            assert_head_as_get(gateway.address(), target, secret).await;
        }
    }
    for target in ["/healthz", "/readyz", "/nothing"] {
        assert_head_as_get(gateway.admin(), target, NO_KEY).await;
    }
    // The length of `/metrics` changes between two requests, so only the status is checked.
    let mut connection = Connection::open(gateway.admin()).await;
    connection.send(&Request::new("HEAD", "/metrics")).await;
    assert_eq!(connection.head().await.unwrap().status, 200);
}

#[tokio::test]
async fn head_is_get_without_its_body_over_http2() {
    let (gateway, key) = TestGateway::funded().await;
    let connection = Http2::open(gateway.address(), 1 << 16).await;
    for target in TARGETS {
        let got = connection.ask("GET", target, &key).await;
        let head = connection.ask("HEAD", target, &key).await;
        assert_eq!(head.status(), got.status(), "{target}");
        let length = head.headers()["content-length"].to_str().unwrap();
        let length: usize = length.parse().unwrap();
        assert!(take_rest(head).await.unwrap().is_empty(), "{target}");
        assert_eq!(take_rest(got).await.unwrap().len(), length, "{target}");
    }
}

#[tokio::test]
async fn head_opens_no_socket() {
    let (gateway, key) = TestGateway::funded().await;
    let request = handshake("HEAD", "/v1/realtime?model=maker/chat", &key);
    let mut connection = Connection::open(gateway.address()).await;
    connection.send(&request).await;
    assert_eq!(connection.head().await.unwrap().status, 426);
}

fn handshake(method: &str, target: &str, key: &Key) -> Request {
    Request::new(method, target)
        .bearer(&key.secret)
        .header("connection", "keep-alive, Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA==")
}

/// On 426, clients that prefer `WebSockets` fall back to plain HTTP; on 404 they retry.
#[tokio::test]
async fn a_handshake_where_no_socket_is_gets_426() {
    let (gateway, key) = TestGateway::funded().await;
    for (target, dialect) in [
        ("/v1/responses", Dialect::Responses),
        ("/v1/chat/completions", Dialect::Chat),
        ("/v1/messages", Dialect::Messages),
        (
            "/v1beta/models/maker/chat:generateContent",
            Dialect::Generate,
        ),
        ("/v1beta/interactions", Dialect::Interactions),
        ("/v1/models", Dialect::Chat),
        ("/v1/audio/speech", Dialect::Chat),
    ] {
        let answer = gateway.send(&handshake("GET", target, &key)).await;
        let expected = (426, "websocket_not_supported".to_owned());
        assert_eq!(dialect.failure(&answer), expected, "{target}");
        assert_eq!(answer.header("upgrade"), Some("HTTP/1.1"), "{target}");
        assert_eq!(answer.header("connection"), Some("upgrade"), "{target}");
        // The answer does not depend on a valid key.
        let stranger = Key {
            id: String::new(),
            secret: NO_KEY.to_owned(),
        };
        let answer = gateway.send(&handshake("GET", target, &stranger)).await;
        assert_eq!(answer.status(), 426, "{target}");
    }
    let answer = gateway.send(&handshake("GET", "/v1/nothing", &key)).await;
    assert_eq!(answer.failure(), (404, "not_found".to_owned()));
    // A POST that offers an upgrade is served as an ordinary request (RFC 9110, 7.8).
    let offer = Request::chat(&ask("hi"))
        .bearer(&key.secret)
        .header("connection", "Upgrade")
        .header("upgrade", "websocket");
    gateway.send(&offer).await.ok();
}

#[tokio::test]
async fn a_refused_key_is_not_worth_a_retry() {
    let (gateway, key) = TestGateway::funded().await;
    let body = json!({ "model": "maker/chat" });
    for target in [
        "/v1/chat/completions",
        "/v1/responses",
        "/v1/messages",
        "/v1beta/models/maker/chat:generateContent",
        "/v1beta/interactions",
        "/v1/embeddings",
        "/v1/videos/generations",
    ] {
        let ask = |secret: &str| Request::post(target).bearer(secret).json(&body);
        let refused = gateway.send(&ask(NO_KEY)).await;
        assert_eq!(refused.status(), 401, "{target}");
        assert_eq!(refused.header("x-should-retry"), Some("false"), "{target}");
        // Clients do not retry these errors by themselves, so there is no advice header.
        let invalid = gateway.send(&ask(&key.secret)).await;
        assert!((400..500).contains(&invalid.status()), "{target}");
        assert_eq!(invalid.header("x-should-retry"), None, "{target}");
    }
    let refused = gateway.send(&Request::get("/v1/models")).await;
    assert_eq!(refused.status(), 401);
    assert_eq!(refused.header("x-should-retry"), Some("false"));
    gateway.cli_json(&["wallet", "disable", "w"]).await;
    let refused = gateway.chat(&key, &ask("hi")).await;
    assert_eq!(refused.failure(), (403, "wallet_disabled".to_owned()));
    assert_eq!(refused.header("x-should-retry"), Some("false"));
}
