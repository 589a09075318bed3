//! Speech over HTTP: `/v1/tts`, its alias, and the list of voices.

use serde_json::{Value, json};

use crate::harness::{Answer, BodyEnd, GatewayBuilder, Key, Request, TestGateway, with};

const MODEL: &str = "maker/voice";

const ENTRIES: &str = r#"
[[model]]
id = "maker/voice"
kind = "audio"
routes = [{ channel = "main", model = "sim-voice-secret" }]
price = { tts_characters = "15" }
[[model]]
id = "maker/listener"
kind = "audio"
routes = [{ channel = "main", model = "sim-voice-secret" }]
price = { stt_second = "0.001" }
"#;

async fn gateway() -> (TestGateway, Key) {
    GatewayBuilder::default().entries(ENTRIES).funded().await
}

fn text() -> Value {
    json!({"model": MODEL, "text": "Grüße, [pause] Welt!", "language": "de"})
}

fn request(key: &Key, path: &str, body: &Value) -> Request {
    Request::post(path).json(body).bearer(&key.secret)
}

#[track_caller]
fn assert_refused(answer: &Answer, status: u16, code: &str) {
    assert_eq!(answer.failure(), (status, code.to_owned()));
}

/// 20 characters at 15 credits per million.
const COST: u64 = 300;

#[tokio::test]
async fn audio_passes_as_it_is_with_the_upstreams_type_and_costs_its_characters() {
    let (gateway, key) = gateway().await;
    let mut used = 0;
    for (codec, content_type, start) in [
        ("mp3", "audio/mpeg", &b"\xff\xf3"[..]),
        ("wav", "audio/wav", b"RIFF"),
        ("pcm", "audio/pcm", b""),
        ("mulaw", "audio/basic", b""),
    ] {
        let body = with(
            text(),
            &json!({"output_format": {"codec": codec, "sample_rate": 24000}}),
        );
        let answer = gateway.send(&request(&key, "/v1/tts", &body)).await.ok();
        assert_eq!(answer.header("content-type"), Some(content_type));
        assert!(answer.header("x-trace-id").is_none());
        assert!(answer.body.starts_with(start), "{codec}");
        if codec == "pcm" {
            // 20 characters of 60 ms each.
            assert_eq!(answer.body.len(), 24_000 * 2 * 1200 / 1000);
        }
        used += COST;
        assert_eq!(gateway.usage(&key).await, used);
    }
    assert_eq!(gateway.frozen(&key).await, 0);
    let sent: Value = serde_json::from_slice(&gateway.sim.calls()[0].body).unwrap();
    assert_eq!(
        sent,
        json!({"text": "Grüße, [pause] Welt!", "language": "de",
               "output_format": {"codec": "mp3", "sample_rate": 24000}})
    );
    gateway.verify().await;
}

#[tokio::test]
async fn timestamps_come_as_the_upstreams_json() {
    let (gateway, key) = gateway().await;
    let body = with(text(), &json!({"with_timestamps": true}));
    let answer = gateway.send(&request(&key, "/v1/tts", &body)).await.ok();
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let answer = answer.json();
    assert_eq!(answer["duration"], json!(1.2));
    assert_eq!(answer["audio_timestamps"]["graph_chars"][0], "G");
    assert_eq!(gateway.usage(&key).await, COST);
}

#[tokio::test]
async fn the_sdks_name_is_a_thin_renaming() {
    let (gateway, key) = gateway().await;
    let body = json!({"model": MODEL, "input": "Hello", "voice": "ara", "response_format": "wav",
                      "instructions": "Softly."});
    let answer = gateway
        .send(&request(&key, "/v1/audio/speech", &body))
        .await
        .ok();
    assert_eq!(answer.header("content-type"), Some("audio/wav"));
    assert_eq!(answer.header("x-dropped-params"), Some("instructions"));
    let sent: Value = serde_json::from_slice(&gateway.sim.calls()[0].body).unwrap();
    assert_eq!(
        sent,
        json!({"text": "Hello", "voice_id": "ara", "output_format": {"codec": "wav"},
               "language": "auto"})
    );
    assert_eq!(gateway.usage(&key).await, 75);
}

#[tokio::test]
async fn what_the_upstream_refuses_costs_nothing() {
    let (gateway, key) = gateway().await;
    for (member, status) in [
        (json!({"voice_id": "nobody"}), 404),
        (json!({"speed": 2.0}), 400),
        (json!({"language": ""}), 400),
    ] {
        let body = with(text(), &member);
        let answer = gateway.send(&request(&key, "/v1/tts", &body)).await;
        assert_refused(&answer, status, "upstream_rejected");
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(!text.contains("sim-upstream"), "{text}");
    }
    assert_eq!(gateway.usage(&key).await, 0);
    assert_eq!(gateway.frozen(&key).await, 0);
}

#[tokio::test]
async fn broken_audio_is_cut_off_and_a_page_is_no_audio() {
    let (gateway, key) = gateway().await;
    for fault in [
        "wrong-type=html",
        "status=500",
        "error-in-200",
        "empty-object",
    ] {
        gateway.sim.queue_faults("sim-tts", fault, 1).unwrap();
        let answer = gateway.send(&request(&key, "/v1/tts", &text())).await;
        assert_eq!(answer.head.status, 502, "{fault}");
        assert_eq!(gateway.usage(&key).await, 0, "{fault}");
    }
    gateway.sim.queue_faults("sim-tts", "cut=5000", 1).unwrap();
    let answer = gateway.send(&request(&key, "/v1/tts", &text())).await;
    assert_eq!(
        (answer.head.status, answer.ended),
        (200, BodyEnd::Truncated)
    );
    assert_eq!(gateway.usage(&key).await, COST);
}

#[tokio::test]
async fn models_are_called_where_they_belong() {
    let (gateway, key) = gateway().await;
    for (path, body) in [
        ("/v1/tts", with(text(), &json!({"model": "maker/chat"}))),
        ("/v1/tts", with(text(), &json!({"model": "maker/listener"}))),
        (
            "/v1/chat/completions",
            json!({"model": MODEL, "messages": [{"role": "user", "content": "Hi"}]}),
        ),
        ("/v1/embeddings", json!({"model": MODEL, "input": "Hi"})),
    ] {
        let answer = gateway.send(&request(&key, path, &body)).await;
        assert_refused(&answer, 400, "model_not_supported");
    }
    let body = with(text(), &json!({"model": "maker/none"}));
    let answer = gateway.send(&request(&key, "/v1/tts", &body)).await;
    assert_refused(&answer, 404, "model_not_found");
    let idempotent = request(&key, "/v1/tts", &text()).header("idempotency-key", "1");
    let answer = gateway.send(&idempotent).await;
    assert_refused(&answer, 400, "idempotency_key_not_supported");
    let poor = gateway.key("w", &["--limit", "0.0001"]).await;
    let answer = gateway.send(&request(&poor, "/v1/tts", &text())).await;
    assert_refused(&answer, 402, "key_limit_reached");
    assert_eq!(gateway.upstream_calls(), 0);
}

#[tokio::test]
async fn voices_are_listed_for_free() {
    let (gateway, key) = gateway().await;
    let listed = gateway.get(&key, "/v1/tts/voices?model=maker/voice").await;
    let listed = listed.ok().json();
    assert_eq!(listed["voices"][0]["voice_id"], "eve");
    let one = gateway
        .get(&key, "/v1/tts/voices/ARA?model=maker%2Fvoice")
        .await;
    assert_eq!(one.ok().json(), json!({"voice_id": "ara", "name": "Ara"}));
    assert_eq!(gateway.sim.calls()[1].path, "/v1/tts/voices/ARA");
    assert_eq!(gateway.sim.calls()[1].query, None);
    for (target, status, code) in [
        (
            "/v1/tts/voices/nobody?model=maker/voice",
            404,
            "upstream_rejected",
        ),
        ("/v1/tts/voices", 400, "invalid_request"),
        ("/v1/tts/voices?model=maker/none", 404, "model_not_found"),
        (
            "/v1/tts/voices?model=maker/chat",
            400,
            "model_not_supported",
        ),
        (
            "/v1/tts/voices?model=maker/voice&provider=x",
            400,
            "routing_not_supported",
        ),
    ] {
        assert_refused(&gateway.get(&key, target).await, status, code);
    }
    assert_eq!(gateway.usage(&key).await, 0);
}

#[tokio::test]
async fn lists_of_voices_are_bounded() {
    let (gateway, key) = GatewayBuilder::default()
        .entries(ENTRIES)
        // The next request is allowed only after a minute, so a slow machine does not change the result.
        .setting("limits", "token_counts_per_minute = 1")
        .funded()
        .await;
    let listed = gateway
        .get(&key, "/v1/tts/voices/nobody?model=maker/voice")
        .await;
    assert_refused(&listed, 404, "upstream_rejected");
    let refused = gateway.get(&key, "/v1/tts/voices?model=maker/voice").await;
    assert_refused(&refused, 429, "rate_limit_exceeded");
    assert!(refused.header("retry-after").is_some());
    gateway.send(&request(&key, "/v1/tts", &text())).await.ok();
}

/// The name of a voice is part of the upstream's path and must not lead elsewhere.
#[tokio::test]
async fn a_voice_id_that_is_a_path_is_refused() {
    let (gateway, key) = gateway().await;
    for voice in [
        "..",
        "%2e%2e",
        ".",
        "..%2F",
        "..%2Fadmin",
        "%2e%2e%2fadmin",
        "%2E%2E%5Cadmin",
        "a%2Fb",
        "a/b",
        "%2Fa",
        "..%5c",
        "a%5Cb",
        "%252e%252e%252f",
        "..%252F",
        "%25252e",
        "a%00b",
        "a%0Ab",
        "a%3Fx=1",
        "a%23b",
        "a%3Bb",
        "%E2%88%95a",
        "%EF%BC%8Fa",
    ] {
        let target = format!("/v1/tts/voices/{voice}?model=maker/voice");
        let answer = gateway.get(&key, &target).await;
        let refused = (400, "invalid_request".to_owned());
        assert_eq!(answer.failure(), refused, "{voice}");
    }
    assert_eq!(gateway.upstream_calls(), 0);
}
