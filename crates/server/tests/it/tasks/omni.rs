//! Videos through Interactions: the task is created immediately, and one blocking upstream call follows.

use serde_json::{Value, json};

use crate::harness::{Answer, Dialect, GatewayBuilder, Key, Request, TestGateway, eventually};

const ENTRIES: &str = r#"
[[channel]]
name = "nowhere"
preset = "sim"
base_url = "http://127.0.0.1:1/v1"
credential = { file = "upstream-key" }
[[model]]
id = "maker/omni-nowhere"
kind = "video"
routes = [{ channel = "nowhere", model = "sim-omni" }]
price = { video_second = "0.1" }
profile = { base = "omni-1.1" }
[[model]]
id = "maker/omni"
kind = "video"
routes = [{ channel = "main", model = "sim-omni" }]
price = { video_second = { default = "0.1", 4k = "0.3" } }
profile = { base = "omni-1.1" }
[[model]]
id = "maker/omni-tokens"
kind = "video"
routes = [{ channel = "main", model = "sim-omni" }]
price = { video_second = "0.1", video_tokens = "20" }
profile = { base = "omni-1.1" }
[[model]]
id = "maker/omni-tokens-alone"
kind = "video"
routes = [{ channel = "main", model = "sim-omni" }]
price = { video_tokens = "20" }
profile = { base = "omni-1.1" }
"#;

pub(crate) fn builder() -> GatewayBuilder {
    GatewayBuilder::default()
        .entries(ENTRIES)
        .setting("tasks", "poll_first_ms = 20")
        .setting("tasks", "poll_max_ms = 40")
}

pub(crate) fn video_body(text: &str) -> Value {
    json!({ "model": "maker/omni", "input": text, "background": true })
}

fn call(key: &Key, body: &Value) -> Request {
    Request::post("/v1beta/interactions")
        .json(body)
        .header("x-goog-api-key", &key.secret)
}

pub(crate) async fn create(gateway: &TestGateway, key: &Key, body: &Value) -> String {
    let shown = gateway.send(&call(key, body)).await.ok().json();
    assert_eq!(
        (
            &shown["object"],
            &shown["status"],
            &shown["model"],
            &shown["steps"]
        ),
        (
            &json!("interaction"),
            &json!("queued"),
            &body["model"],
            &json!([])
        ),
    );
    shown["id"].as_str().unwrap().to_owned()
}

/// Polls the interaction until it has ended, as the protocol's own clients do.
pub(crate) async fn wait_for_end(gateway: &TestGateway, key: &Key, id: &str) -> Answer {
    eventually("the end of the interaction", async || {
        let target = format!("/v1beta/interactions/{id}?stream=false");
        let request = Request::get(&target).header("x-goog-api-key", &key.secret);
        let answer = gateway.send(&request).await.ok();
        (answer.json()["status"] != "in_progress").then_some(answer)
    })
    .await
}

#[tokio::test]
async fn an_interaction_without_a_film_costs_nothing_and_says_why() {
    let (gateway, key) = builder().funded().await;
    for (text, status, message) in [
        (
            "[fail]",
            "failed",
            "The prompt was blocked by the filters of maker/omni.",
        ),
        ("[refuse]", "failed", "I cannot make this video."),
        ("[cancel]", "cancelled", "Video generation was cancelled."),
        ("[incomplete]", "incomplete", "Video generation broke off."),
        (
            "[budget]",
            "budget_exceeded",
            "Video generation passed its budget.",
        ),
    ] {
        let id = create(&gateway, &key, &video_body(text)).await;
        let answer = wait_for_end(&gateway, &key, &id).await;
        let shown = answer.json();
        assert_eq!(
            (&shown["id"], &shown["status"]),
            (&json!(id), &json!(status))
        );
        assert_eq!(shown["steps"][0]["error"]["message"], message, "{shown}");
        assert_eq!(shown["errors"][0]["message"], message, "{shown}");
        let common = gateway.get(&key, &format!("/v1/tasks/{id}")).await.ok();
        assert_eq!(common.body, answer.body);
        assert_eq!(
            (gateway.frozen(&key).await, gateway.usage(&key).await),
            (0, 0)
        );
    }
    gateway.verify().await;
}

/// The caller gets its task before the upstream answers, so later errors appear in the task.
#[tokio::test]
async fn a_creation_is_sent_once_and_its_trouble_shows_in_the_task() {
    for (faults, is_code) in [
        ("status=400", 3),
        ("status=429", 8),
        // The upstream refuses the gateway's own credential, which the caller cannot correct.
        ("status=401", 13),
        ("status=500", 13),
        ("empty-object", 13),
        ("wrong-type", 13),
        ("reset=head", 13),
    ] {
        let (gateway, key) = builder().funded().await;
        gateway.sim.queue_faults("sim-omni", faults, 1).unwrap();
        let id = create(&gateway, &key, &video_body("x")).await;
        let shown = wait_for_end(&gateway, &key, &id).await.json();
        assert_eq!(shown["status"], "failed", "{faults}: {shown}");
        assert_eq!(
            shown["steps"][0]["error"]["code"], is_code,
            "{faults}: {shown}"
        );
        assert!(!shown.to_string().contains("sim-"), "{faults}: {shown}");
        assert_eq!(gateway.upstream_calls(), 1, "{faults}");
        assert_eq!(
            (gateway.frozen(&key).await, gateway.usage(&key).await),
            (0, 0)
        );
        gateway.verify().await;
    }
}

#[tokio::test]
async fn an_upstream_that_cannot_be_reached_is_told_as_such() {
    let (gateway, key) = builder().funded().await;
    let body = json!({ "model": "maker/omni-nowhere", "input": "x" });
    let id = create(&gateway, &key, &body).await;
    let shown = wait_for_end(&gateway, &key, &id).await.json();
    assert_eq!(shown["status"], "failed", "{shown}");
    assert_eq!(shown["steps"][0]["error"]["code"], 14, "{shown}");
    assert_eq!(
        (gateway.frozen(&key).await, gateway.usage(&key).await),
        (0, 0)
    );
    gateway.verify().await;
}

/// T7: a blocking call whose worker has died is never sent again.
#[tokio::test]
async fn killed_in_its_blocking_call_the_task_fails_and_nothing_stays_frozen() {
    let (mut gateway, key) = builder().funded().await;
    gateway
        .sim
        .queue_faults("sim-omni", "hang=head", 1)
        .unwrap();
    let id = create(&gateway, &key, &video_body("x")).await;
    eventually("the upstream call", async || {
        (gateway.upstream_calls() == 1).then_some(())
    })
    .await;
    // Ten seconds at 0.1 credits, held by the task.
    assert_eq!(gateway.frozen(&key).await, 1_000_000);
    gateway.kill();
    gateway.verify().await;
    gateway.restart().await;
    let shown = wait_for_end(&gateway, &key, &id).await.json();
    assert_eq!(shown["status"], "failed", "{shown}");
    assert_eq!(
        (gateway.frozen(&key).await, gateway.usage(&key).await),
        (0, 0)
    );
    assert_eq!(gateway.upstream_calls(), 1);
    gateway.verify().await;
}

#[tokio::test]
async fn the_upstream_keeps_nothing_and_hears_nothing_of_ours() {
    let (gateway, key) = builder().funded().await;
    let body = json!({
        "model": "maker/omni", "input": "fog [fail]", "background": true, "store": true,
        "response_format": [{ "type": "video", "duration": "3s", "resolution": null }],
    });
    let id = create(&gateway, &key, &body).await;
    wait_for_end(&gateway, &key, &id).await;
    let calls = gateway.sim.calls_of("sim-omni");
    let sent: Value = serde_json::from_slice(&calls[0].body).unwrap();
    assert_eq!(
        sent,
        json!({
            "model": "sim-omni",
            "input": [{ "type": "user_input", "content": [{ "type": "text", "text": "fog [fail]" }] }],
            "response_format": { "type": "video", "resolution": "720p", "aspect_ratio": "16:9", "duration": "3s", "delivery": "uri" },
            "generation_config": { "video_config": { "task": "text_to_video" } },
            "store": false, "background": false, "stream": false,
        })
    );
}

#[tokio::test]
async fn what_the_model_cannot_do_is_refused_before_the_upstream_hears_of_it() {
    let (gateway, key) = builder().funded().await;
    let with = |members: Value| {
        let mut body = video_body("x");
        let object = body.as_object_mut().unwrap();
        object.extend(members.as_object().unwrap().clone());
        body
    };
    let format = |members: Value| {
        let mut format = json!({ "type": "video" });
        let object = format.as_object_mut().unwrap();
        object.extend(members.as_object().unwrap().clone());
        with(json!({ "response_format": format }))
    };
    for (body, code) in [
        (format(json!({ "duration": "11s" })), "invalid_request"),
        (format(json!({ "resolution": "480p" })), "invalid_request"),
        (format(json!({ "aspect_ratio": "1:1" })), "invalid_request"),
        (
            format(json!({ "gcs_uri": "gs://b" })),
            "stateful_not_supported",
        ),
        (with(json!({ "stream": true })), "unsupported_parameter"),
        (
            with(json!({ "previous_interaction_id": "i" })),
            "stateful_not_supported",
        ),
        (
            with(json!({ "webhook_config": {} })),
            "stateful_not_supported",
        ),
        (
            with(json!({ "generation_config": { "video_config": { "task": "extend" } } })),
            "invalid_request",
        ),
        (
            with(json!({ "callback_url": "ftp://x.example" })),
            "invalid_request",
        ),
        (
            with(json!({ "service_tier": "flex" })),
            "service_tier_not_supported",
        ),
        (with(json!({ "input": "" })), "invalid_request"),
        // A text model cannot produce a video.
        (
            json!({ "model": "maker/chat", "input": "x", "response_format": { "type": "video" } }),
            "model_not_supported",
        ),
        (
            json!({ "model": "maker/chat", "input": "x", "generation_config": { "video_config": {} } }),
            "model_not_supported",
        ),
    ] {
        let answer = gateway.send(&call(&key, &body)).await;
        let found = Dialect::Interactions.failure(&answer);
        assert_eq!(found, (400, code.to_owned()), "{body}");
    }
    let request = call(&key, &video_body("x")).header("idempotency-key", "1");
    let answer = gateway.send(&request).await;
    let expected = (400, "idempotency_key_not_supported".to_owned());
    assert_eq!(Dialect::Interactions.failure(&answer), expected);
    assert_eq!(
        (gateway.upstream_calls(), gateway.frozen(&key).await),
        (0, 0)
    );
}

#[tokio::test]
async fn a_task_is_found_under_both_versions_and_by_its_own_wallet_alone() {
    let (gateway, key) = builder().funded().await;
    let id = create(&gateway, &key, &video_body("[fail]")).await;
    let shown = wait_for_end(&gateway, &key, &id).await;
    gateway.wallet("other", &[]).await;
    let stranger = gateway.key("other", &[]).await;
    for version in ["v1", "v1beta"] {
        let target = format!("/{version}/interactions/{id}");
        let ask = |target: &str, key: &Key| Request::get(target).bearer(&key.secret);
        let again = gateway.send(&ask(&target, &key)).await.ok();
        assert_eq!(again.body, shown.body);
        let foreign = gateway.send(&ask(&target, &stranger)).await;
        let expected = (404, "task_not_found".to_owned());
        assert_eq!(Dialect::Interactions.failure(&foreign), expected);
        let missing = format!("/{version}/interactions/int_1");
        let missing = gateway.send(&ask(&missing, &key)).await;
        assert_eq!((missing.status(), &missing.body), (404, &foreign.body));
    }
}

#[tokio::test]
async fn texts_are_answered_at_the_same_endpoint_as_before() {
    let (gateway, key) = builder().funded().await;
    let body = json!({ "model": "maker/chat", "input": "hi", "store": false });
    let shown = gateway.send(&call(&key, &body)).await.ok().json();
    assert_eq!(shown["status"], "completed", "{shown}");
}

#[tokio::test]
async fn a_film_is_ours_and_paid_by_the_second_or_by_its_tokens() {
    let builder = builder().setting("server", "public_url = \"https://gateway.example\"");
    let (gateway, key) = builder.funded().await;
    let mut spent = 0;
    for (model, text, resolution, charge) in [
        ("maker/omni", "fog", "720p", 300_000),
        ("maker/omni", "fog", "4k", 900_000),
        ("maker/omni", "[inline]", "720p", 300_000),
        // 3 x 5,792 tokens at 20 credits per million; by the second if no tokens are reported.
        ("maker/omni-tokens", "fog", "720p", 347_520),
        ("maker/omni-tokens", "[unpriced]", "720p", 300_000),
        ("maker/omni-tokens", "[totals]", "720p", 347_520),
        // The price is for tokens alone. If none are reported, they are derived from length and resolution.
        ("maker/omni-tokens-alone", "[totals]", "720p", 347_520),
        ("maker/omni-tokens-alone", "[unpriced]", "360p", 104_260),
        ("maker/omni-tokens-alone", "[unpriced]", "720p", 347_520),
        ("maker/omni-tokens-alone", "[unpriced]", "1080p", 521_280),
        ("maker/omni-tokens-alone", "[unpriced]", "4k", 1_042_560),
    ] {
        let body = json!({
            "model": model, "input": text,
            "response_format": { "type": "video", "duration": "3s", "resolution": resolution },
        });
        let id = create(&gateway, &key, &body).await;
        let shown = wait_for_end(&gateway, &key, &id).await.json();
        assert_eq!(shown["status"], "completed", "{shown}");
        let step = &shown["steps"][0];
        assert_eq!(
            step["content"][0],
            json!({ "type": "text", "text": "Here is your clip." })
        );
        let video = &step["content"][1];
        assert_eq!(
            (&video["type"], &video["mime_type"]),
            (&json!("video"), &json!("video/mp4"))
        );
        let uri = video["uri"].as_str().unwrap();
        let path = uri.strip_prefix("https://gateway.example").unwrap();
        assert!(path.starts_with("/media/"), "{path}");
        let file = gateway.send(&Request::get(path)).await.ok();
        assert_eq!(file.header("content-type"), Some("video/mp4"));
        assert_eq!(&file.body[4..8], b"ftyp");
        spent += charge;
        assert_eq!(
            gateway.usage(&key).await,
            spent,
            "{model} {text} {resolution}"
        );
        assert_eq!(gateway.frozen(&key).await, 0);
    }
    gateway.verify().await;
}

#[tokio::test]
async fn what_is_no_film_is_not_paid_for() {
    let (gateway, key) = builder().funded().await;
    for (model, text, message) in [
        (
            "maker/omni",
            "[broken]",
            "The result of the task could not be kept.",
        ),
        (
            "maker/omni-tokens",
            "[empty]",
            "The upstream delivered no video.",
        ),
        (
            "maker/omni-tokens-alone",
            "[empty] [totals]",
            "The upstream delivered no video.",
        ),
    ] {
        let body = json!({ "model": model, "input": text });
        let id = create(&gateway, &key, &body).await;
        let shown = wait_for_end(&gateway, &key, &id).await.json();
        assert_eq!(shown["status"], "failed", "{shown}");
        assert_eq!(shown["errors"][0]["message"], message, "{shown}");
        assert_eq!(
            (gateway.frozen(&key).await, gateway.usage(&key).await),
            (0, 0)
        );
    }
    gateway.verify().await;
}
