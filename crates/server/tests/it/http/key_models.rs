//! Keys that may call only some models.

use serde_json::{Value, json};

use crate::harness::{Answer, Key, Request, TestGateway, ask, eventually};

fn form(target: &str, model: &str, file: &str) -> Request {
    let part = |head: &str, value: &str| {
        format!("--b0\r\ncontent-disposition: form-data; name={head}\r\n\r\n{value}\r\n")
    };
    let parts = [
        part("\"model\"", model),
        part(&format!("\"{file}\"; filename=\"a\""), "RIFF"),
    ];
    let prompt = (file == "image").then(|| part("\"prompt\"", "hi"));
    Request::post(target)
        .header("content-type", "multipart/form-data; boundary=b0")
        .body(format!(
            "{}{}--b0--\r\n",
            parts.concat(),
            prompt.unwrap_or_default()
        ))
}

fn handshake(target: &str) -> Request {
    Request::get(target)
        .header("connection", "upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
}

/// Paths that name this model, each with a body.
fn named_in_path(model: &str) -> Vec<(String, Value)> {
    let content = json!({"parts": [{"text": "hi"}]});
    let contents = json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]});
    let batch = json!({"requests": [{"model": format!("models/{model}"), "content": content}]});
    let video = json!({"instances": [{"prompt": "hi"}]});
    let mut named = Vec::new();
    for version in ["v1", "v1beta"] {
        for (method, body) in [
            ("generateContent", &contents),
            ("streamGenerateContent", &contents),
            ("countTokens", &contents),
            ("embedContent", &json!({"content": content})),
            ("batchEmbedContents", &batch),
            ("predictLongRunning", &video),
        ] {
            let target = format!("/{version}/models/{model}:{method}");
            named.push((target, body.clone()));
        }
    }
    named
}

/// Calls of this model, on all endpoints that take a model.
fn calls(model: &str) -> Vec<(String, Request)> {
    let message = json!([{"role": "user", "content": "hi"}]);
    let of = |target: &str, body: Value| (target.to_owned(), body);
    let bodies = [
        of(
            "/v1/chat/completions",
            json!({"model": model, "messages": message}),
        ),
        of("/v1/responses", json!({"model": model, "input": "hi"})),
        of(
            "/v1/responses/input_tokens",
            json!({"model": model, "input": "hi"}),
        ),
        of(
            "/v1/messages",
            json!({"model": model, "max_tokens": 9, "messages": message}),
        ),
        of(
            "/v1/messages/count_tokens",
            json!({"model": model, "messages": message}),
        ),
        of(
            "/v1beta/interactions",
            json!({"model": model, "input": "hi"}),
        ),
        of("/v1/interactions", json!({"model": model, "input": "hi"})),
        of(
            "/v1/videos/edits",
            json!({"model": model, "prompt": "hi", "video": {"url": "https://a.example/v.mp4"}}),
        ),
        of(
            "/v1/videos/extensions",
            json!({"model": model, "prompt": "hi", "video": {"url": "https://a.example/v.mp4"}}),
        ),
        of("/v1/embeddings", json!({"model": model, "input": "hi"})),
        of(
            "/v1/images/generations",
            json!({"model": model, "prompt": "hi"}),
        ),
        of(
            "/v1/videos/generations",
            json!({"model": model, "prompt": "hi"}),
        ),
        of(
            "/v1/contents/generations/tasks",
            json!({"model": model, "content": [{"type": "text", "text": "hi"}]}),
        ),
        of(
            "/v1/tts",
            json!({"model": model, "text": "hi", "voice_id": "v", "voice": "v"}),
        ),
        of(
            "/v1/audio/speech",
            json!({"model": model, "input": "hi", "voice": "v"}),
        ),
    ];
    let mut calls: Vec<(String, Request)> = bodies
        .into_iter()
        .chain(named_in_path(model))
        .map(|(target, body)| (target.clone(), Request::post(&target).json(&body)))
        .collect();
    for (target, file) in [
        ("/v1/images/edits", "image"),
        ("/v1/stt", "file"),
        ("/v1/audio/transcriptions", "file"),
    ] {
        calls.push((target.to_owned(), form(target, model, file)));
    }
    for target in [
        format!("/v1/realtime?model={model}"),
        format!("/v1/tts?model={model}"),
        format!("/v1/stt?model={model}"),
    ] {
        calls.push((target.clone(), handshake(&target)));
    }
    for target in [
        format!("/v1/tts/voices?model={model}"),
        format!("/v1/tts/voices/eve?model={model}"),
        format!("/v1/models/{model}"),
        format!("/v1beta/models/{model}"),
    ] {
        calls.push((target.clone(), Request::get(&target)));
    }
    calls
}

/// K12: a key with a list of models is refused for all other models. A key without a list does not get this refusal for
/// the same models, so the list alone causes the refusal.
#[tokio::test]
async fn a_key_calls_its_models_only_on_every_endpoint() {
    let (gateway, any) = TestGateway::funded().await;
    let listed = gateway
        .key("w", &["--models", "maker/vectors,other/*"])
        .await;
    let send = async |key: &Key, request: &Request| -> Answer {
        gateway.send(&request.clone().bearer(&key.secret)).await
    };
    let description = gateway.send(&Request::get("/openapi.json")).await.ok();
    for (path, item) in description.json()["paths"].as_object().unwrap() {
        let target = path.replace("{model}", "maker/chat");
        let is_listed = calls("maker/chat")
            .iter()
            .any(|(known, _)| *known == target);
        assert!(is_listed || item["post"].is_null(), "{path}");
    }
    for (target, request) in calls("maker/chat") {
        let answer = send(&any, &request).await;
        let text = answer.text();
        assert!(!text.contains("model_not_found"), "{target}: {text}");
    }
    let before = (gateway.upstream_calls(), gateway.balance(&listed).await);
    for model in ["maker/chat", "maker/nothing"] {
        for (target, request) in calls(model) {
            let answer = send(&listed, &request).await;
            let text = answer.text();
            assert_eq!(answer.status(), 404, "{target}: {text}");
            assert!(text.contains("model_not_found"), "{target}: {text}");
            assert!(
                text.contains("this key may not call it"),
                "{target}: {text}"
            );
        }
    }
    let after = (gateway.upstream_calls(), gateway.balance(&listed).await);
    assert_eq!(before, after);
    let vectors = json!({"model": "maker/vectors", "input": "hi"});
    let vectors = Request::post("/v1/embeddings").json(&vectors);
    send(&listed, &vectors).await.ok();
    gateway.verify().await;
}

#[tokio::test]
async fn the_catalog_of_a_key_has_its_models_only() {
    let (gateway, any) = TestGateway::funded().await;
    let key = gateway.key("w", &["--models", "maker/vectors"]).await;
    let list = async |key: &Key, target: &str, of: &str, id: &str| -> Vec<String> {
        let list = gateway.get(key, target).await.ok().json();
        let models = list[of].as_array().unwrap().iter();
        models
            .map(|model| model[id].as_str().unwrap().to_owned())
            .collect()
    };
    assert!(list(&any, "/v1/models", "data", "id").await.len() > 1);
    assert_eq!(
        list(&key, "/v1/models", "data", "id").await,
        ["maker/vectors"]
    );
    let google = list(&key, "/v1beta/models", "models", "name").await;
    assert_eq!(google, ["models/maker/vectors"]);
    gateway.get(&key, "/v1/models/maker/vectors").await.ok();

    // A change takes effect once the cached key has expired.
    gateway
        .cli_json(&["key", "update", &key.id, "--models", "maker/*"])
        .await;
    eventually("a longer list", async || {
        (list(&key, "/v1/models", "data", "id").await.len() > 1).then_some(())
    })
    .await;
    gateway.chat(&key, &ask("hello")).await.ok();
    let lifted = gateway
        .cli_json(&["key", "update", &key.id, "--models", "none"])
        .await;
    assert_eq!(lifted["models"], json!([]));
    for refused in ["chat", "*", "maker/ch*"] {
        let output = gateway
            .cli(&["key", "update", &key.id, "--models", refused])
            .await;
        assert!(!output.status.success(), "{refused}");
        assert!(output.stderr.contains("maker/*"), "{}", output.stderr);
    }
}
