//! The list of models, and paths that do not exist.

use serde_json::{Value, json};

use crate::harness::{GatewayBuilder, Request, TestGateway, ask, with};

/// Checks an error envelope, and returns its code.
type ReadCode<'a> = &'a dyn Fn(&Value) -> Value;

/// The members of a list entry that the API requires.
fn entry(id: &str) -> Value {
    json!({ "id": id, "object": "model", "created": 1_767_225_600, "owned_by": "maker" })
}

/// The complete entry of the model `maker/chat`.
fn chat_entry() -> Value {
    with(
        entry("maker/chat"),
        &json!({
            "kind": "text",
            "context_length": 400_000,
            "max_output_tokens": 128_000,
            "architecture": { "input_modalities": ["text", "image"], "output_modalities": ["text"] },
            "abilities": ["image_input", "tools"],
            "supported_endpoints": [
                "chat/completions",
                "responses",
                "messages",
                "models/{model}:generateContent",
                "models/{model}:streamGenerateContent",
                "interactions",
            ],
            "pricing": {
                "prompt": "0.00000125",
                "completion": "0.00001",
                "input_cache_read": "0.000000125",
                "input_cache_write": "0.00000125",
            },
            "price": { "input": "1.25", "cached_input": "0.125", "output": "10" },
        }),
    )
}

/// Clients show a creation time of 0 as the year 1970.
#[tokio::test]
async fn a_model_without_a_time_is_not_as_old_as_time() {
    let undated = r#"
        [[model]]
        id = "maker/undated"
        kind = "text"
        routes = [{ channel = "main", model = "sim-chat" }]
        price = { input = "1", output = "2" }
        profile = { context_tokens = 1000, max_output_tokens = 1000 }
    "#;
    let (gateway, key) = GatewayBuilder::default().entries(undated).funded().await;
    let shown = gateway
        .get(&key, "/v1/models/maker/undated")
        .await
        .ok()
        .json();
    let created = shown["created"].as_i64().unwrap();
    assert!(created > 1_767_225_600, "{shown}");
    let again = gateway
        .get(&key, "/v1/models/maker/undated")
        .await
        .ok()
        .json();
    assert_eq!(again["created"], created);
}

#[tokio::test]
async fn the_catalog_lists_what_can_be_called_in_the_contracts_shape() {
    let (gateway, key) = TestGateway::funded().await;
    let answer = gateway.get(&key, "/v1/models").await.ok();
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let list = answer.json();
    assert_eq!(list["object"], "list");
    let listed = list["data"].as_array().unwrap();
    for (listed, id) in listed
        .iter()
        .zip(["maker/chat", "maker/painter", "maker/vectors"])
    {
        assert_eq!(&with(listed.clone(), &entry(id)), listed);
    }
    assert_eq!((listed.len(), &listed[0]), (3, &chat_entry()));
}

/// Clients rely on what an entry states about its model, so a value that is not configured must not appear.
#[tokio::test]
async fn an_entry_says_what_its_model_can_do_and_nothing_that_is_unknown() {
    let (gateway, key) = GatewayBuilder::default().entries(KINDS).funded().await;
    let shown = async |id: &str| {
        let target = format!("/v1/models/{id}");
        gateway.get(&key, &target).await.ok().json()
    };
    for (id, kind, endpoints, outputs) in [
        (
            "maker/painter",
            "text",
            json!([
                "models/{model}:generateContent",
                "models/{model}:streamGenerateContent"
            ]),
            json!(["text", "image"]),
        ),
        (
            "maker/vectors",
            "embedding",
            json!([
                "embeddings",
                "models/{model}:embedContent",
                "models/{model}:batchEmbedContents"
            ]),
            json!(["embeddings"]),
        ),
        (
            "maker/pictures",
            "image",
            json!(["images/generations", "images/edits"]),
            json!(["image"]),
        ),
        (
            "maker/film",
            "video",
            json!(["models/{model}:predictLongRunning"]),
            json!(["video"]),
        ),
        (
            "maker/speaker",
            "audio",
            json!(["tts", "audio/speech"]),
            json!(["audio"]),
        ),
    ] {
        let entry = shown(id).await;
        assert_eq!(entry["kind"], kind, "{id}");
        assert_eq!(entry["supported_endpoints"], endpoints, "{id}");
        assert_eq!(entry["architecture"]["output_modalities"], outputs, "{id}");
        assert!(entry["price"].is_object(), "{id}");
    }
    let speaker = shown("maker/speaker").await;
    for unknown in ["context_length", "max_output_tokens", "pricing"] {
        assert_eq!(speaker.get(unknown), None, "{unknown}");
    }
    assert_eq!(speaker["price"], json!({ "tts_characters": "15" }));
    assert_eq!(
        shown("maker/vectors").await["pricing"]["prompt"],
        "0.0000001"
    );
}

/// Models of the kinds that the default test gateway does not have.
const KINDS: &str = r#"
    [[model]]
    id = "maker/pictures"
    kind = "image"
    routes = [{ channel = "main", model = "sim-paint" }]
    price = { image = { default = "0.04", high = "0.17" } }
    profile = { base = "gpt-image" }
    [[model]]
    id = "maker/film"
    kind = "video"
    routes = [{ channel = "main", model = "sim-predict" }]
    price = { video_second = "0.1" }
    profile = { base = "predict-3.1" }
    [[model]]
    id = "maker/speaker"
    kind = "audio"
    routes = [{ channel = "main", model = "sim-voice" }]
    price = { tts_characters = "15" }
"#;

/// Clients of Generate Content choose models by their supported methods.
#[tokio::test]
async fn the_methods_of_a_model_are_those_that_serve_it() {
    let text = ["generateContent", "streamGenerateContent", "countTokens"];
    for (aliases, id, methods) in [
        (true, "chat", json!(text)),
        (true, "painter", json!(text)),
        (
            true,
            "vectors",
            json!(["embedContent", "batchEmbedContents"]),
        ),
        (true, "film", json!(["predictLongRunning"])),
        (true, "pictures", json!([])),
        (true, "speaker", json!([])),
        (false, "chat", json!(text[..2])),
        (false, "vectors", json!([])),
    ] {
        let builder =
            GatewayBuilder::default().setting("server", &format!("sdk_aliases = {aliases}"));
        let (gateway, key) = builder.entries(KINDS).funded().await;
        let target = format!("/v1beta/models/maker/{id}");
        let shown = gateway.get(&key, &target).await.ok().json();
        assert_eq!(shown["supportedGenerationMethods"], methods, "{id}");
    }
}

/// N2: a model without a price, an output bound or a usable channel cannot be called, and neither can a disabled one.
#[tokio::test]
async fn a_model_that_cannot_be_billed_bounded_or_reached_does_not_exist() {
    let (gateway, key) = GatewayBuilder::default()
        .entries(
            r#"
            [[channel]]
            name = "keyless"
            preset = "openai"
            credential = { env = "TOLLGATE_TEST_NO_SUCH_VARIABLE" }
            [[model]]
            id = "maker/off"
            enabled = false
            kind = "text"
            routes = [{ channel = "main", model = "sim-chat" }]
            price = { input = "1", output = "2" }
            profile = { max_output_tokens = 1000 }
            [[model]]
            id = "maker/priceless"
            kind = "text"
            routes = [{ channel = "main", model = "sim-chat" }]
            profile = { max_output_tokens = 1000 }
            [[model]]
            id = "maker/boundless"
            kind = "text"
            routes = [{ channel = "main", model = "sim-chat" }]
            price = { input = "1", output = "2" }
            [[model]]
            id = "maker/unreachable"
            kind = "text"
            routes = [{ channel = "keyless", model = "gpt" }]
            price = { input = "1", output = "2" }
            profile = { max_output_tokens = 1000 }
            "#,
        )
        .funded()
        .await;
    let listed = gateway.get(&key, "/v1/models").await.ok().json();
    let ids: Vec<_> = listed["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["id"])
        .collect();
    assert_eq!(ids, ["maker/chat", "maker/painter", "maker/vectors"]);
    for id in [
        "maker/off",
        "maker/priceless",
        "maker/boundless",
        "maker/unreachable",
    ] {
        let body = with(ask("hello"), &json!({ "model": id }));
        let called = gateway.chat(&key, &body).await;
        assert_eq!(
            called.failure(),
            (404, "model_not_found".to_owned()),
            "{id}"
        );
        assert_eq!(called.openai_error()["param"], "model");
        let shown = gateway.get(&key, &format!("/v1/models/{id}")).await;
        assert_eq!(shown.failure(), (404, "model_not_found".to_owned()), "{id}");
    }
    assert_eq!(gateway.upstream_calls(), 0);
}

#[tokio::test]
async fn one_model_is_found_by_its_plain_and_its_encoded_id() {
    let (gateway, key) = TestGateway::funded().await;
    for target in [
        "/v1/models/maker/chat",
        "/v1/models/maker%2Fchat",
        "/v1/models/maker%2fchat",
    ] {
        let answer = gateway.get(&key, target).await.ok();
        assert_eq!(answer.json(), chat_entry(), "{target}");
    }
    for target in [
        "/v1/models/maker/none",
        "/v1/models/chat",
        // The path is decoded once, so this id contains a percent sign.
        "/v1/models/maker%252Fchat",
    ] {
        let answer = gateway.get(&key, target).await;
        assert_eq!(
            answer.failure(),
            (404, "model_not_found".to_owned()),
            "{target}"
        );
    }
}

#[tokio::test]
async fn the_catalog_wears_the_shape_of_the_path_it_is_asked_at() {
    let (gateway, key) = TestGateway::funded().await;
    let list = gateway.get(&key, "/v1beta/models").await.ok().json();
    let names: Vec<_> = list["models"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["name"])
        .collect();
    assert_eq!(
        names,
        [
            "models/maker/chat",
            "models/maker/painter",
            "models/maker/vectors"
        ]
    );
    for target in ["/v1beta/models/maker/chat", "/v1beta/models/maker%2Fchat"] {
        let one = gateway.get(&key, target).await.ok().json();
        assert_eq!(one["name"], "models/maker/chat");
        assert_eq!(one["inputTokenLimit"], 400_000);
        assert_eq!(one["outputTokenLimit"], 128_000);
        assert!(one["supportedGenerationMethods"].is_array());
    }
    let missing = gateway.get(&key, "/v1beta/models/maker/none").await;
    assert_eq!(missing.status(), 404);
    let error = &missing.json()["error"];
    assert_eq!(
        (&error["code"], &error["status"]),
        (&json!(404), &json!("NOT_FOUND"))
    );
    assert_eq!(error["details"][0]["reason"], "model_not_found");
}

/// SDKs probe paths that do not exist here and must be able to parse the error.
#[tokio::test]
async fn an_unknown_path_is_a_404_in_the_envelope_of_its_family() {
    let (gateway, key) = TestGateway::funded().await;
    let openai = |body: &Value| body["error"]["code"].clone();
    let messages = |body: &Value| {
        assert_eq!(body["type"], "error");
        assert_eq!(body["error"]["type"], "not_found_error");
        assert!(body["request_id"].as_str().unwrap().starts_with("req_"));
        body["error"]["details"]["error_code"].clone()
    };
    let google = |body: &Value| {
        assert_eq!(body["error"]["status"], "NOT_FOUND");
        assert_eq!(body["error"]["code"], 404);
        assert!(
            body["error"]["message"]
                .as_str()
                .unwrap()
                .starts_with("not_found: ")
        );
        body["error"]["details"][0]["reason"].clone()
    };
    let interactions = |body: &Value| {
        assert!(body["error"]["message"].is_string());
        body["error"]["code"].clone()
    };
    let table: &[(&str, &str, ReadCode<'_>)] = &[
        ("POST", "/", &openai),
        ("GET", "/v1/chat/completions", &openai),
        ("GET", "/v1/nothing", &openai),
        ("GET", "/v1/chat/completions/chatcmpl_1", &openai),
        ("POST", "/v1/responses/compact", &openai),
        ("GET", "/v1/responses/resp_1", &openai),
        ("DELETE", "/v1/models/maker/chat", &openai),
        ("GET", "/metrics", &openai),
        ("GET", "/healthz", &openai),
        ("GET", "/v1/messages/batches", &messages),
        ("POST", "/upload/v1beta/files", &google),
        ("POST", "/v1/models/maker/chat:predict", &google),
        ("DELETE", "/v1beta/interactions/int_1", &interactions),
    ];
    for (method, target, code) in table {
        let request = Request::new(method, target).bearer(&key.secret);
        let answer = gateway.send(&request).await;
        assert_eq!(answer.status(), 404, "{method} {target}");
        assert_eq!(
            answer.header("content-type"),
            Some("application/json"),
            "{target}"
        );
        assert!(answer.header("x-request-id").is_some(), "{target}");
        assert_eq!(code(&answer.json()), "not_found", "{method} {target}");
    }
    assert_eq!(gateway.upstream_calls(), 0);
}
