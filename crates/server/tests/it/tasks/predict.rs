//! Long-running predict: operations are created once, polled by name, and settled. Their videos are copied.

use serde_json::{Value, json};

use crate::harness::{Answer, Dialect, GatewayBuilder, Key, Request, TestGateway, eventually};

const ENTRIES: &str = r#"
[[model]]
id = "maker/film"
kind = "video"
routes = [{ channel = "main", model = "sim-film" }]
price = { video_second = { default = "0.1", 1080p = "0.15", 4k = "0.3" } }
profile = { base = "predict-3.1" }
[[model]]
id = "maker/film-lite"
kind = "video"
routes = [{ channel = "main", model = "sim-lite" }]
price = { video_second = "0.05" }
profile = { base = "predict-3.1-lite", modes = ["text"] }
"#;

pub(crate) fn builder() -> GatewayBuilder {
    GatewayBuilder::default()
        .entries(ENTRIES)
        .setting("tasks", "poll_first_ms = 20")
        .setting("tasks", "poll_max_ms = 40")
}

pub(crate) fn video_body(prompt: &str) -> Value {
    json!({ "instances": [{ "prompt": prompt }] })
}

fn call(key: &Key, model: &str, body: &Value) -> Request {
    Request::post(&format!("/v1beta/models/{model}:predictLongRunning"))
        .json(body)
        .header("x-goog-api-key", &key.secret)
}

/// Creates an operation and returns its name, which is the task's id.
pub(crate) async fn create(gateway: &TestGateway, key: &Key, body: &Value) -> String {
    let answer = gateway.send(&call(key, "maker/film", body)).await.ok();
    let shown = answer.json();
    let name = shown["name"].as_str().unwrap().to_owned();
    assert_eq!(shown, json!({ "name": name }));
    name
}

/// Polls the operation until it is done, as the protocol's own clients do.
pub(crate) async fn done(gateway: &TestGateway, key: &Key, name: &str) -> Answer {
    eventually("the end of the operation", async || {
        let request = Request::get(&format!("/v1beta/{name}"));
        let request = request.header("x-goog-api-key", &key.secret);
        let answer = gateway.send(&request).await.ok();
        (answer.json()["done"] == true).then_some(answer)
    })
    .await
}

#[tokio::test]
async fn an_operation_without_a_film_costs_nothing_and_says_why() {
    let (gateway, key) = builder().funded().await;
    for (prompt, end) in [
        (
            "[fail]",
            json!({ "error": { "code": 3, "message": "Unsupported input image size for maker/film." } }),
        ),
        (
            "[refuse]",
            json!({ "response": { "generateVideoResponse": {
                "raiMediaFilteredCount": 1,
                "raiMediaFilteredReasons": ["The prompt could not be submitted. See [url]."],
            } } }),
        ),
        (
            "[empty]",
            json!({ "error": { "code": 13, "message": "The upstream delivered no video." } }),
        ),
    ] {
        let name = create(&gateway, &key, &video_body(prompt)).await;
        let mut expected = json!({ "name": name, "done": true });
        let members = expected.as_object_mut().unwrap();
        members.extend(end.as_object().unwrap().clone());
        assert_eq!(done(&gateway, &key, &name).await.json(), expected);
        assert_eq!(
            (gateway.frozen(&key).await, gateway.usage(&key).await),
            (0, 0)
        );
    }
    gateway.verify().await;
}

#[tokio::test]
async fn what_is_asked_for_is_held_for() {
    for (model, parameters, held) in [
        ("maker/film", json!({}), 800_000),
        ("maker/film", json!({ "durationSeconds": "4" }), 400_000),
        ("maker/film", json!({ "resolution": "1080p" }), 1_200_000),
        ("maker/film", json!({ "resolution": "4k" }), 2_400_000),
        ("maker/film-lite", json!({ "resolution": "1080p" }), 400_000),
    ] {
        let (gateway, key) = builder().funded().await;
        let mut body = video_body("[polls=1000000]");
        body["parameters"] = parameters;
        gateway.send(&call(&key, model, &body)).await.ok();
        assert_eq!(gateway.frozen(&key).await, held, "{body}");
    }
}

#[tokio::test]
async fn an_operation_is_found_by_every_name_of_it_and_by_its_own_wallet_alone() {
    let (gateway, key) = builder().funded().await;
    let id = create(&gateway, &key, &video_body("[polls=1000000]")).await;
    gateway.wallet("other", &[]).await;
    let stranger = gateway.key("other", &[]).await;
    let names = |id: &str| {
        [
            format!("/v1beta/{id}"),
            format!("/v1/{id}"),
            format!("/v1beta/operations/{id}"),
            format!("/v1/operations/{id}"),
            format!("/v1beta/models/maker/film/operations/{id}"),
        ]
    };
    let missing = "01987654-0000-7000-8000-000000000000";
    for (target, unknown) in names(&id).iter().zip(names(missing)) {
        for key_in in [
            "x-goog-api-key",
            "x-alpha-api-key",
            "authorization",
            "query",
        ] {
            let ask = |target: &str, key: &Key| match key_in {
                "query" => Request::get(&format!("{target}?key={}", key.secret)),
                "authorization" => Request::get(target).bearer(&key.secret),
                header => Request::get(target).header(header, &key.secret),
            };
            let shown = gateway.send(&ask(target, &key)).await.ok();
            assert_eq!(
                shown.json(),
                json!({ "name": id, "done": false }),
                "{target}"
            );
            let foreign = gateway.send(&ask(target, &stranger)).await;
            let expected = (404, "task_not_found".to_owned());
            assert_eq!(Dialect::Generate.failure(&foreign), expected, "{target}");
            let unknown = gateway.send(&ask(&unknown, &stranger)).await;
            assert_eq!((unknown.status(), &unknown.body), (404, &foreign.body));
        }
        let nobody = gateway.send(&Request::get(target)).await;
        let expected = (401, "invalid_api_key".to_owned());
        assert_eq!(Dialect::Generate.failure(&nobody), expected, "{target}");
    }
    let common = gateway.get(&key, &format!("/v1/tasks/{id}")).await.ok();
    assert_eq!(common.json(), json!({ "name": id, "done": false }));
}

#[tokio::test]
async fn what_the_model_cannot_do_is_refused_before_the_upstream_hears_of_it() {
    let (gateway, key) = builder().funded().await;
    let with = |parameters: Value| {
        let mut body = video_body("x");
        body["parameters"] = parameters;
        body
    };
    let image = json!({ "instances": [{ "image": { "bytesBase64Encoded": "iVBORw0=", "mimeType": "image/png" } }] });
    let last = json!({ "instances": [{ "prompt": "x", "lastFrame": {} }] });
    let with_callback =
        |url: &str| json!({ "instances": [{ "prompt": "x" }], "callback_url": url });
    for (model, body, code) in [
        (
            "maker/film",
            with(json!({ "durationSeconds": 5 })),
            "invalid_request",
        ),
        (
            "maker/film",
            with(json!({ "durationSeconds": 4, "resolution": "1080p" })),
            "invalid_request",
        ),
        (
            "maker/film",
            with(json!({ "sampleCount": 2 })),
            "invalid_request",
        ),
        (
            "maker/film",
            with(json!({ "aspectRatio": "1:1" })),
            "invalid_request",
        ),
        (
            "maker/film-lite",
            with(json!({ "resolution": "4k" })),
            "invalid_request",
        ),
        ("maker/film-lite", image, "model_not_supported"),
        ("maker/film", last, "unsupported_parameter"),
        (
            "maker/film",
            with(json!({ "storageUri": "gs://b" })),
            "stateful_not_supported",
        ),
        (
            "maker/film",
            with_callback("ftp://x.example"),
            "invalid_request",
        ),
        ("maker/film", with_callback("nowhere"), "invalid_request"),
        ("maker/chat", video_body("x"), "model_not_supported"),
    ] {
        let answer = gateway.send(&call(&key, model, &body)).await;
        let found = Dialect::Generate.failure(&answer);
        assert_eq!(found, (400, code.to_owned()), "{body}");
    }
    // The channel supports every protocol, but only one of them serves the model.
    for (path, body) in [
        ("/v1/videos/generations", json!({ "prompt": "x" })),
        (
            "/v1/contents/generations/tasks",
            json!({ "content": [{ "type": "text", "text": "x" }] }),
        ),
    ] {
        let mut body = body;
        body["model"] = json!("maker/film");
        let request = Request::post(path).json(&body).bearer(&key.secret);
        let found = gateway.send(&request).await.failure();
        assert_eq!(found, (400, "model_not_supported".to_owned()), "{path}");
    }
    let unknown = gateway
        .send(&call(&key, "maker/none", &video_body("x")))
        .await;
    let expected = (404, "model_not_found".to_owned());
    assert_eq!(Dialect::Generate.failure(&unknown), expected);
    let request = call(&key, "maker/film", &video_body("x")).header("idempotency-key", "1");
    let answer = gateway.send(&request).await;
    let expected = (400, "idempotency_key_not_supported".to_owned());
    assert_eq!(Dialect::Generate.failure(&answer), expected);
    assert_eq!(
        (gateway.upstream_calls(), gateway.frozen(&key).await),
        (0, 0)
    );
}

/// T3: a clear refusal is reported as a refusal. Every other answer without a name is ambiguous, and the creation is
/// not repeated.
#[tokio::test]
async fn a_creation_is_sent_once_and_told_as_it_is() {
    for (faults, status, retry) in [
        ("status=400", 400, None),
        ("status=429", 503, None),
        ("status=500", 502, Some("false")),
        ("empty-object", 502, Some("false")),
        ("reset=head", 502, Some("false")),
    ] {
        let (gateway, key) = builder().funded().await;
        gateway.sim.queue_faults("sim-film", faults, 1).unwrap();
        let answer = gateway
            .send(&call(&key, "maker/film", &video_body("x")))
            .await;
        assert_eq!(answer.status(), status, "{faults}: {}", answer.text());
        assert_eq!(answer.header("x-should-retry"), retry, "{faults}");
        assert_eq!(gateway.upstream_calls(), 1, "{faults}");
        assert_eq!(
            (gateway.frozen(&key).await, gateway.usage(&key).await),
            (0, 0)
        );
        gateway.verify().await;
    }
}

/// T11: a failed poll does not end the operation.
#[tokio::test]
async fn polls_that_fail_do_not_end_an_operation() {
    let (gateway, key) = builder().funded().await;
    for faults in [
        "status=500",
        "status=404",
        "wrong-type",
        "reset=head",
        "empty-object",
    ] {
        gateway
            .sim
            .queue_faults("poll/sim-film", faults, 1)
            .unwrap();
    }
    let name = create(&gateway, &key, &video_body("[fail]")).await;
    let shown = done(&gateway, &key, &name).await.json();
    assert_eq!(shown["error"]["code"], 3, "{shown}");
    gateway.verify().await;
}

/// Creates a video of four seconds, waits until it is done, and returns its URL.
async fn create_video(gateway: &TestGateway, key: &Key, prompt: &str) -> String {
    let mut body = video_body(prompt);
    body["parameters"] = json!({ "durationSeconds": 4 });
    let name = create(gateway, key, &body).await;
    let shown = done(gateway, key, &name).await.json();
    let samples = &shown["response"]["generateVideoResponse"]["generatedSamples"];
    let uri = samples[0]["video"]["uri"].as_str();
    let uri = uri.unwrap_or_else(|| panic!("{shown}")).to_owned();
    let video = json!({ "uri": uri, "mimeType": "video/mp4" });
    let response = json!({ "generateVideoResponse": { "generatedSamples": [{ "video": video }] } });
    let expected = json!({ "name": name, "done": true, "response": response });
    assert_eq!(shown, expected);
    uri
}

#[tokio::test]
async fn a_film_is_ours_wherever_the_upstream_had_it() {
    let builder = builder().setting("server", "public_url = \"https://gateway.example\"");
    let (gateway, key) = builder.funded().await;
    let mut spent = 0;
    for prompt in ["a boat", "[inline]", "[vertex]", "[redirect]"] {
        let uri = create_video(&gateway, &key, prompt).await;
        let path = uri.strip_prefix("https://gateway.example").unwrap();
        let id = path.strip_prefix("/v1beta/files/").unwrap();
        let id = id.strip_suffix(":download?alt=media").unwrap();
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        assert!(id.len() == 32 && id.bytes().all(is_plain), "{id}");
        // Clients add their key to the URL, which is not needed.
        for target in [path.to_owned(), format!("{path}&key=k")] {
            let file = gateway.send(&Request::get(&target)).await.ok();
            assert_eq!(file.header("content-type"), Some("video/mp4"));
            assert_eq!(&file.body[4..8], b"ftyp", "{prompt}");
        }
        spent += 400_000;
        assert_eq!(gateway.usage(&key).await, spent, "{prompt}");
        assert_eq!(gateway.frozen(&key).await, 0, "{prompt}");
    }
    gateway.verify().await;
}

#[tokio::test]
async fn a_film_that_cannot_be_had_now_is_had_later() {
    let (gateway, key) = builder().funded().await;
    for faults in ["status=500", "status=404", "reset=head"] {
        gateway
            .sim
            .queue_faults("file/sim-film", faults, 1)
            .unwrap();
    }
    create_video(&gateway, &key, "a boat").await;
    assert_eq!(gateway.usage(&key).await, 400_000);
    gateway.verify().await;
}

#[tokio::test]
async fn what_is_no_film_is_not_paid_for() {
    let (gateway, key) = builder().funded().await;
    let name = create(&gateway, &key, &video_body("[broken]")).await;
    let shown = done(&gateway, &key, &name).await.json();
    assert_eq!(shown["error"]["code"], 13, "{shown}");
    assert_eq!(
        (gateway.frozen(&key).await, gateway.usage(&key).await),
        (0, 0)
    );
    gateway.verify().await;
}

/// T2, T4, T9: the gateway is killed while operations are created, polled and copied. Each operation continues from its
/// row and ends once.
#[tokio::test]
async fn killed_again_and_again_each_operation_ends_and_settles_once() {
    let (mut gateway, key) = builder().funded().await;
    let mut names = Vec::new();
    for _ in 0..3 {
        for prompt in ["a boat [polls=3]", "[inline]"] {
            names.push(create(&gateway, &key, &video_body(prompt)).await);
        }
        gateway.kill();
        gateway.verify().await;
        gateway.restart().await;
    }
    for name in &names {
        let shown = done(&gateway, &key, name).await.json();
        assert!(shown["response"].is_object(), "{shown}");
    }
    assert_eq!(gateway.usage(&key).await, 6 * 800_000);
    assert_eq!(gateway.frozen(&key).await, 0);
    gateway.verify().await;
}
