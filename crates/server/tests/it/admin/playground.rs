//! The playground: calls of the public API on behalf of a key, without its secret.

use serde_json::{Value, json};

use super::{AdminClient, assert_refused, with_token};
use crate::harness::{GatewayBuilder, Key, Request, TestGateway, ask, eventually, with};

const VOICE: &str = r#"
    [[model]]
    id = "maker/voice"
    kind = "audio"
    routes = [{ channel = "main", model = "sim-voice" }]
    price = { tts_characters = "15" }
"#;

async fn gateway() -> (TestGateway, Key) {
    with_token(GatewayBuilder::default())
        .entries(VOICE)
        .funded()
        .await
}

fn play(method: &str, path: &str, key: &str) -> Request {
    Request::new(method, &format!("/admin/v1/play{path}")).header("x-play-key", key)
}

fn chat(key: &str, body: &Value) -> Request {
    play("POST", "/v1/chat/completions", key).json(body)
}

#[tokio::test]
async fn a_call_is_made_billed_and_recorded_as_the_keys_own() {
    let (gateway, key) = gateway().await;
    let admin = AdminClient::new(&gateway);
    let answer = admin.send_as_is(chat(&key.id, &ask("hello"))).await.ok();
    let shown = answer.json();
    assert_eq!(shown["object"], "chat.completion");
    assert_eq!(shown["model"], "maker/chat");
    assert!(gateway.usage(&key).await > 0);
    let id = answer.header("x-request-id").unwrap();
    eventually("the row of the call", async || {
        let rows = gateway.cli(&["logs", "--key", &key.id, "--json"]).await;
        rows.stdout.contains(id).then_some(())
    })
    .await;
    gateway.verify().await;
}

#[tokio::test]
async fn streams_speech_and_reads_arrive_as_the_public_listener_sends_them() {
    let (gateway, key) = gateway().await;
    let admin = AdminClient::new(&gateway);
    let streamed = with(ask("hello"), &json!({ "stream": true }));
    let stream = admin.send_as_is(chat(&key.id, &streamed)).await.ok();
    assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    assert!(stream.text().ends_with("data: [DONE]\n\n"));
    let text = json!({ "model": "maker/voice", "text": "Hello.", "language": "en" });
    let speech = play("POST", "/v1/tts", &key.id).json(&text);
    let speech = admin.send_as_is(speech).await.ok();
    let kind = speech.header("content-type").unwrap();
    assert!(kind.starts_with("audio/"), "{kind}");
    assert!(!speech.body.is_empty());
    let balance = admin.send_as_is(play("GET", "/v1/balance", &key.id)).await;
    assert_eq!(balance.ok().json()["object"], "balance");
    let query = play("GET", "/v1/tts/voices?model=maker/voice", &key.id);
    admin.send_as_is(query).await.ok();
    let task = admin
        .send_as_is(play("GET", "/v1/tasks/none", &key.id))
        .await;
    assert_eq!(task.failure(), (404, "task_not_found".to_owned()));
}

#[tokio::test]
async fn a_call_is_refused_as_the_keys_own_would_be() {
    let (gateway, key) = gateway().await;
    let admin = AdminClient::new(&gateway);
    let unknown = with(ask("hello"), &json!({ "model": "maker/none" }));
    let refused = admin.send_as_is(chat(&key.id, &unknown)).await;
    assert_eq!(refused.failure(), (404, "model_not_found".to_owned()));
    assert_eq!(refused.openai_error()["param"], "model");
    // The gateway ignores a secret that is sent along, and does not take the operator's token for a key.
    let messages = json!({ "model": "maker/chat", "messages": [] });
    let messages = play("POST", "/v1/messages", &key.id).json(&messages);
    let refused = admin
        .send_as_is(messages.header("x-api-key", "sk-tg-other"))
        .await;
    assert_eq!(refused.status(), 400);
    assert_eq!(refused.json()["type"], "error");
    gateway.cli(&["key", "disable", &key.id]).await;
    let refused = admin.send_as_is(chat(&key.id, &ask("hello"))).await;
    assert_eq!(refused.failure(), (401, "invalid_api_key".to_owned()));
    assert_eq!(gateway.upstream_calls(), 0);
}

#[tokio::test]
async fn only_operators_reach_only_endpoints_that_take_a_key() {
    let (gateway, key) = gateway().await;
    let admin = AdminClient::new(&gateway);
    for path in [
        "/",
        "/v1/nothing",
        "/openapi.json",
        "/page/x",
        "/media/x.mp4",
        "/healthz",
    ] {
        let answer = admin.send_as_is(play("GET", path, &key.id)).await;
        assert_refused(&answer, 404, "not_found");
    }
    let unnamed = Request::post("/admin/v1/play/v1/chat/completions").json(&ask("hello"));
    let answer = admin.send_as_is(unnamed).await;
    let param = assert_refused(&answer, 400, "invalid_request");
    assert_eq!(param, "x-play-key");
    for id in ["nonsense", &key.secret] {
        let answer = admin.send_as_is(chat(id, &ask("hello"))).await;
        assert_refused(&answer, 400, "invalid_request");
        assert!(
            !answer.text().contains(id),
            "what may be a secret is not repeated"
        );
    }
    let stranger = AdminClient::without_token(&gateway)
        .send_as_is(chat(&key.id, &ask("hello")))
        .await;
    assert_refused(&stranger, 401, "invalid_admin_token");
    let low = admin
        .post("/tokens", &json!({ "name": "low", "role": "support" }))
        .await;
    let low = AdminClient::with_token(&gateway, low["secret"].as_str().unwrap());
    let answer = low.send_as_is(chat(&key.id, &ask("hello"))).await;
    assert_refused(&answer, 403, "role_not_sufficient");
    assert_eq!(gateway.upstream_calls(), 0);
}

/// Only the admin listener accepts a key id instead of a secret.
#[tokio::test]
async fn the_public_listener_takes_no_key_by_its_id() {
    let (gateway, key) = gateway().await;
    let by_header = Request::chat(&ask("hello")).header("x-play-key", &key.id);
    let by_secret = Request::chat(&ask("hello")).bearer(&key.id);
    let by_path = chat(&key.id, &ask("hello"));
    for (request, status) in [(by_header, 401), (by_secret, 401), (by_path, 404)] {
        assert_eq!(gateway.send(&request).await.status(), status, "{request:?}");
    }
    assert_eq!(gateway.upstream_calls(), 0);
}
