//! Tests clouds that host models: their credentials, and the faults of their token endpoints.

use crate::client::{Answer, Ended, call};
use serde_json::json;
use sim::{Settings, Sim};

const CHAT: &str = "/openai/v1/chat/completions";

async fn ask_token(sim: &Sim, secret: &str) -> Answer {
    let form = format!(
        "grant_type=client_credentials&client_id=app&client_secret={secret}\
         &scope=https%3A%2F%2Fexample.com%2F.default"
    );
    let path = "/tenant/oauth2/v2.0/token";
    call(sim, "POST", path, "", form.as_bytes()).await
}

async fn chat(sim: &Sim, credential: &str) -> Answer {
    let body = json!({"model": "sim-mini", "messages": [{"role": "user", "content": "Hello"}]});
    let head = format!("{credential}\r\ncontent-type: application/json\r\n");
    call(sim, "POST", CHAT, &head, body.to_string().as_bytes()).await
}

#[tokio::test]
async fn clouds_refuse_the_keys_that_the_settings_name() {
    let settings = Settings {
        refused_keys: vec!["other-bad-key".to_owned()],
        ..Settings::default()
    };
    let sim = Sim::start_with("127.0.0.1:0", settings).await.unwrap();
    for (key, is_good) in [("sim-bad-key", true), ("other-bad-key", false)] {
        let answer = chat(&sim, &format!("api-key: {key}")).await;
        assert_eq!(answer.status, if is_good { 200 } else { 401 }, "{key}");
        let answer = ask_token(&sim, key).await;
        assert_eq!(answer.status, if is_good { 200 } else { 400 }, "{key}");
        let path = "/v1/publishers/google/models/sim-mini:generateContent";
        let body = json!({"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]});
        let head = format!("x-goog-api-key: {key}\r\n");
        let answer = call(&sim, "POST", path, &head, body.to_string().as_bytes()).await;
        assert_eq!(answer.status, if is_good { 200 } else { 401 }, "{key}");
    }
}

#[tokio::test]
async fn token_endpoints_take_faults() {
    let sim = crate::client::start().await;
    for (faults, status, part) in [
        ("status=503:retry-after=7", 503, "temporarily_unavailable"),
        ("error-in-200", 200, "temporarily_unavailable"),
        ("wrong-type", 200, "<html>"),
        ("empty-object", 200, "{}"),
        ("wrong-type=swapped", 200, "access_token"),
    ] {
        sim.queue_faults("token", faults, 1).unwrap();
        let answer = ask_token(&sim, "good").await;
        assert_eq!(answer.status, status, "{faults}");
        assert!(answer.text().contains(part), "{faults}: {}", answer.text());
    }
    sim.queue_faults("token", "garbage", 1).unwrap();
    let answer = ask_token(&sim, "good").await;
    assert!(serde_json::from_slice::<serde_json::Value>(&answer.body).is_err());
    sim.queue_faults("token", "without=expires_in", 1).unwrap();
    let answer = ask_token(&sim, "good").await.json();
    assert!(answer["access_token"].is_string() && answer["expires_in"].is_null());
    for (faults, ended) in [("reset=head", Ended::Reset), ("cut=5", Ended::Closed)] {
        sim.queue_faults("token", faults, 1).unwrap();
        assert_eq!(ask_token(&sim, "good").await.ended, ended, "{faults}");
    }
    let token = ask_token(&sim, "good").await.json();
    let token = token["access_token"].as_str().unwrap();
    let answer = chat(&sim, &format!("authorization: Bearer {token}")).await;
    assert_eq!(answer.status, 200);
}
