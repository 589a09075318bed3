//! CORS: pages of other origins can read answers only where the operator allows it.

use crate::harness::{Answer, Connection, GatewayBuilder, Head, Request, ask};

const PAGE: &str = "https://app.example.com";
const STRANGER: &str = "https://evil.example";

fn preflight(target: &str, origin: &str) -> Request {
    Request::new("OPTIONS", target)
        .header("origin", origin)
        .header("access-control-request-method", "POST")
        .header(
            "access-control-request-headers",
            "authorization,content-type,x-stainless-os",
        )
}

#[track_caller]
fn assert_silent(head: &Head) {
    let names = head.headers.iter();
    let mut names = names.map(|(name, _)| name.to_ascii_lowercase());
    assert!(!names.any(|name| name.starts_with("access-control-")));
}

#[tokio::test]
async fn nothing_is_allowed_unless_a_setting_says_so() {
    let (gateway, key) = GatewayBuilder::default().funded().await;
    let refused = gateway.send(&preflight("/v1/chat/completions", PAGE)).await;
    assert_eq!(refused.status(), 404);
    assert_silent(&refused.head);
    let call = Request::chat(&ask("hi"))
        .bearer(&key.secret)
        .header("origin", PAGE);
    let answer = gateway.send(&call).await.ok();
    assert_silent(&answer.head);
    assert_eq!(answer.header("vary"), None);
}

#[tokio::test]
async fn a_listed_origin_may_ask_and_read_and_no_other() {
    let (gateway, key) = GatewayBuilder::default()
        .setting(
            "server",
            "cors_origins = [\"http://localhost:3000\", \"https://APP.example.com/\"]",
        )
        .funded()
        .await;
    for target in [
        "/v1/chat/completions",
        "/v1/messages",
        "/v1/models",
        "/v1/nothing",
    ] {
        let answer = gateway.send(&preflight(target, PAGE)).await;
        assert_eq!(preflighted(&answer), PAGE, "{target}");
    }
    let refused = gateway.send(&preflight("/v1/models", STRANGER)).await;
    assert_eq!(refused.status(), 404);
    assert_silent(&refused.head);
    assert_eq!(refused.header("vary"), Some("origin"));

    let call = |origin: &str, secret: &str| {
        let call = Request::chat(&ask("hi")).bearer(secret);
        call.header("origin", origin)
    };
    // Pages can read errors too.
    for (secret, status) in [(key.secret.as_str(), 200), ("sk-tg-none", 401)] {
        let answer = gateway.send(&call(PAGE, secret)).await;
        assert_eq!(answer.status(), status);
        assert_eq!(answer.header("access-control-allow-origin"), Some(PAGE));
        assert_eq!(answer.header("vary"), Some("origin"));
        let exposed = answer.header("access-control-expose-headers").unwrap();
        for name in [
            "x-request-id",
            "x-dropped-params",
            "retry-after",
            "x-ratelimit-remaining-tokens",
        ] {
            assert!(exposed.split(", ").any(|it| it == name), "{name}");
        }
        assert_eq!(answer.header("access-control-allow-credentials"), None);
    }
    let answer = gateway.send(&call(STRANGER, &key.secret)).await.ok();
    assert_silent(&answer.head);
    // An OPTIONS request without preflight headers is not a preflight.
    let options = Request::new("OPTIONS", "/v1/models").header("origin", PAGE);
    assert_eq!(gateway.send(&options).await.status(), 404);
}

/// Checks the answer to a preflight, which needs no key, and returns the allowed origin.
#[track_caller]
fn preflighted(answer: &Answer) -> &str {
    assert_eq!(answer.status(), 204);
    assert!(answer.body.is_empty());
    assert_eq!(
        answer.header("access-control-allow-headers"),
        Some("authorization,content-type,x-stainless-os")
    );
    let methods = answer.header("access-control-allow-methods").unwrap();
    assert!(
        ["GET", "POST", "DELETE"]
            .iter()
            .all(|it| methods.contains(it))
    );
    assert!(answer.header("access-control-max-age").is_some());
    assert_eq!(answer.header("access-control-allow-credentials"), None);
    assert_eq!(answer.header("content-type"), None);
    answer.header("access-control-allow-origin").unwrap()
}

#[tokio::test]
async fn every_origin_may_be_allowed() {
    let (gateway, key) = GatewayBuilder::default()
        .setting("server", "cors_origins = [\"*\"]")
        .funded()
        .await;
    let answer = gateway.send(&preflight("/v1/responses", "null")).await;
    assert_eq!(preflighted(&answer), "*");
    let models = Request::get("/v1/models").bearer(&key.secret);
    for request in [models.clone(), models.header("origin", STRANGER)] {
        let answer = gateway.send(&request).await.ok();
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
        assert_eq!(answer.header("vary"), None);
    }
    // A call follows on the same connection, so that a body of the preflight's answer would be taken for the next
    // answer.
    let mut connection = Connection::open(gateway.address()).await;
    connection.send(&preflight("/v1/models", PAGE)).await;
    assert_eq!(connection.answer().await.status(), 204);
    let call = Request::chat(&ask("hi")).bearer(&key.secret);
    connection.send(&call.header("origin", PAGE)).await;
    connection.answer().await.ok();
}

/// Browsers open `WebSockets` from any origin without a preflight, so the key in the handshake decides.
#[tokio::test]
async fn sockets_are_not_touched() {
    let entries = r#"
        [[model]]
        id = "maker/voice"
        kind = "audio"
        routes = [{ channel = "main", model = "sim-voice" }]
        price = { realtime_minute = "0.6" }
    "#;
    for origins in [
        "[]".to_owned(),
        format!("[\"{PAGE}\"]"),
        "[\"*\"]".to_owned(),
    ] {
        let (gateway, key) = GatewayBuilder::default()
            .setting("server", &format!("cors_origins = {origins}"))
            .entries(entries)
            .funded()
            .await;
        for origin in [PAGE, STRANGER] {
            let handshake = Request::get("/v1/realtime?model=maker/voice")
                .bearer(&key.secret)
                .header("origin", origin)
                .header("connection", "Upgrade")
                .header("upgrade", "websocket")
                .header("sec-websocket-version", "13")
                .header("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA==");
            let mut connection = Connection::open(gateway.address()).await;
            connection.send(&handshake).await;
            let opened = connection.first().await;
            let opened = String::from_utf8_lossy(&opened);
            let (head, _) = opened.split_once("\r\n\r\n").unwrap();
            let head = Head::read(head);
            assert_eq!(head.status, 101, "{head:?}");
            assert_silent(&head);
        }
    }
}
