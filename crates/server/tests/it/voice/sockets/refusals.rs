//! Refusals of sessions before the upgrade, in JSON.

use super::{HeaderMap, REALTIME, bearer, gateway, refusal, refusal_with, settled};
use crate::harness::{Key, Request, ask, with};
use serde_json::json;

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let parse =
        |(name, value): &(&'static str, &str)| (name.parse().unwrap(), value.parse().unwrap());
    HeaderMap::from_iter(pairs.iter().map(parse).collect::<Vec<_>>())
}

#[tokio::test]
async fn sessions_that_may_not_be_are_refused_before_the_upgrade() {
    let (gateway, key) = gateway().await;
    let with_voice = |more: &str| format!("{REALTIME}&{more}");
    for (target, status, code) in [
        ("/v1/realtime".to_owned(), 400, "invalid_request"),
        ("/v1/realtime?model=".to_owned(), 400, "invalid_request"),
        (
            "/v1/realtime?model=maker/chat".to_owned(),
            400,
            "model_not_supported",
        ),
        (
            "/v1/realtime?model=maker/none".to_owned(),
            404,
            "model_not_found",
        ),
        (with_voice("model=maker/other"), 400, "invalid_request"),
        (with_voice("call_id=c"), 400, "stateful_not_supported"),
        (with_voice("provider=c"), 400, "routing_not_supported"),
        (
            with_voice("service_tier=priority"),
            400,
            "service_tier_not_supported",
        ),
        (
            "/v1/stt?model=maker/voice&encoding=opus".to_owned(),
            400,
            "invalid_request",
        ),
        (
            "/v1/stt?model=maker/voice&sample_rate=1".to_owned(),
            400,
            "invalid_request",
        ),
        // A refusal by the upstream.
        (
            "/v1/tts?model=maker/voice".to_owned(),
            400,
            "upstream_rejected",
        ),
    ] {
        let refused = (status, code.to_owned());
        assert_eq!(refusal(&gateway, &key, &target).await, refused, "{target}");
    }
    let mut twice = bearer(&key);
    twice.extend(headers(&[("idempotency-key", "x")]));
    assert_eq!(
        refusal_with(&gateway, twice, REALTIME).await,
        (400, "idempotency_key_not_supported".to_owned())
    );
    assert_eq!(settled(&gateway, &key).await, 0);
}

#[tokio::test]
async fn a_session_needs_a_bearer_and_nothing_else_will_do() {
    let (gateway, key) = gateway().await;
    let refused = (401, "invalid_api_key".to_owned());
    let secret = key.secret.as_str();
    let offered = format!("realtime, openai-insecure-api-key.{secret}");
    for headers in [
        headers(&[]),
        headers(&[("x-api-key", secret)]),
        headers(&[("x-alpha-api-key", secret)]),
        headers(&[("sec-websocket-protocol", &offered)]),
        headers(&[("authorization", "Bearer sk-tg-none")]),
    ] {
        assert_eq!(refusal_with(&gateway, headers, REALTIME).await, refused);
    }
    let in_query = format!("{REALTIME}&key={secret}");
    assert_eq!(
        refusal_with(&gateway, headers(&[]), &in_query).await,
        refused
    );
    assert_eq!(gateway.upstream_calls(), 0);
}

#[tokio::test]
async fn a_refusal_of_the_upstreams_is_told_in_our_words() {
    let (gateway, key) = gateway().await;
    for (fault, status, code) in [
        ("status=429", 503, "upstream_overloaded"),
        ("status=500", 502, "upstream_error"),
        // This fault is the last one, because it disables the channel.
        ("status=401", 502, "upstream_error"),
    ] {
        let sim = &gateway.sim;
        sim.queue_faults("sim-voice-secret", fault, 1).unwrap();
        let refused = refusal(&gateway, &key, REALTIME).await;
        assert_eq!(refused, (status, code.to_owned()), "{fault}");
    }
    assert_eq!(settled(&gateway, &key).await, 0);
    gateway.verify().await;
}

#[tokio::test]
async fn a_plain_get_is_told_to_upgrade() {
    let (gateway, key) = gateway().await;
    for path in ["/v1/realtime", "/v1/tts", "/v1/stt"] {
        let target = format!("{path}?model=maker/voice");
        let request = Request::get(&target).bearer(&key.secret);
        let answer = gateway.send(&request).await;
        assert_eq!(answer.failure(), (426, "upgrade_required".to_owned()));
        assert_eq!(answer.header("upgrade"), Some("websocket"));
        assert_eq!(answer.header("connection"), Some("upgrade"));
        // Another version of the WebSocket protocol is refused too.
        let old = request
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "8")
            .header("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA==");
        let answer = gateway.send(&old).await;
        assert_eq!(answer.failure(), (426, "upgrade_required".to_owned()));
        assert_eq!(answer.header("sec-websocket-version"), Some("13"));
    }
    let nobody = Key {
        id: String::new(),
        secret: "sk-tg-none".to_owned(),
    };
    let answer = gateway.get(&nobody, "/v1/realtime").await;
    assert_eq!(answer.failure(), (401, "invalid_api_key".to_owned()));
}

#[tokio::test]
async fn a_handshake_needs_a_key_of_sixteen_bytes() {
    let (gateway, key) = gateway().await;
    for nonce in [
        "x",
        "AAAAAAAAAAAAAAAAAAAAAA",
        "AAAAAAAAAAAAAAAAAAAAAAAA",
        "AAAAAAAAAAAAAAAAAAAAA*==",
    ] {
        let request = Request::get("/v1/realtime?model=maker/voice")
            .bearer(&key.secret)
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", nonce);
        let answer = gateway.send(&request).await;
        assert_eq!(answer.failure(), (400, "invalid_request".to_owned()));
    }
    assert_eq!(settled(&gateway, &key).await, 0);
}

#[tokio::test]
async fn audio_models_hold_no_chats() {
    let (gateway, key) = gateway().await;
    let body = with(ask("hello"), &json!({"model": "maker/voice"}));
    let answer = gateway.chat(&key, &body).await;
    assert_eq!(answer.failure(), (400, "model_not_supported".to_owned()));
}
