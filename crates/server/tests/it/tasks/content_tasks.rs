//! Content tasks: validation, creation, polling, and settlement by tokens.

use serde_json::{Value, json};

use super::content_task_lists::delete;
use crate::harness::{Answer, GatewayBuilder, Key, Request, TestGateway, eventually, with};

pub(super) const PATH: &str = "/v1/contents/generations/tasks";

const ENTRIES: &str = r#"
[[model]]
id = "maker/film"
kind = "video"
routes = [{ channel = "main", model = "sim-film" }]
price = { video_tokens = { default = "10", 480p = "5" } }
profile = { base = "content-2.0" }
[[model]]
id = "maker/video"
kind = "video"
routes = [{ channel = "main", model = "sim-video" }]
price = { video_second = "0.05" }
profile = { base = "video-a" }
[[model]]
id = "maker/film-2.5"
kind = "video"
routes = [{ channel = "main", model = "sim-film-2" }]
price = { video_tokens = "10" }
profile = { base = "content-2.5" }
[[model]]
id = "maker/film-1.5"
kind = "video"
routes = [{ channel = "main", model = "sim-film-1" }]
price = { video_tokens = "10" }
profile = { base = "content-1.5-pro" }
[[model]]
id = "maker/film-1.0"
kind = "video"
routes = [{ channel = "main", model = "sim-film-0" }]
price = { video_tokens = "10" }
profile = { base = "content-1.0" }
"#;

pub(crate) fn builder() -> GatewayBuilder {
    GatewayBuilder::default()
        .entries(ENTRIES)
        .setting("tasks", "poll_first_ms = 20")
        .setting("tasks", "poll_max_ms = 40")
        .setting("outbound", "allow = [\"127.0.0.0/8\"]")
}

pub(super) fn text(words: &str) -> Value {
    json!({ "type": "text", "text": words })
}

pub(crate) fn video_body(words: &str) -> Value {
    json!({ "model": "maker/film", "content": [text(words)], "duration": 5 })
}

async fn post(gateway: &TestGateway, key: &Key, body: &Value) -> Answer {
    let request = Request::post(PATH).json(body).bearer(&key.secret);
    gateway.send(&request).await
}

pub(crate) async fn create(gateway: &TestGateway, key: &Key, body: &Value) -> String {
    let answer = post(gateway, key, body).await.ok();
    let members: Vec<_> = answer.json().as_object().unwrap().keys().cloned().collect();
    assert_eq!(members, ["id"]);
    answer.json()["id"].as_str().unwrap().to_owned()
}

/// Waits until the task has one of these states, and returns the answer to the lookup.
pub(crate) async fn wait_for_state(
    gateway: &TestGateway,
    key: &Key,
    id: &str,
    states: &[&str],
) -> Answer {
    eventually("a state of the task", async || {
        let answer = gateway.get(key, &format!("{PATH}/{id}")).await.ok();
        let now = answer.json()["status"].as_str().unwrap().to_owned();
        states.contains(&&*now).then_some(answer)
    })
    .await
}

pub(crate) async fn wait_for_end(gateway: &TestGateway, key: &Key, id: &str) -> Answer {
    let states = ["succeeded", "failed", "expired", "cancelled"];
    wait_for_state(gateway, key, id, &states).await
}

#[tokio::test]
async fn a_task_is_shown_under_each_path_and_names_nothing_of_the_upstream() {
    let (gateway, key) = builder().funded().await;
    let id = create(&gateway, &key, &video_body("a boat [queue]")).await;
    let shown = wait_for_state(&gateway, &key, &id, &["queued"]).await;
    let common = gateway.get(&key, &format!("/v1/tasks/{id}")).await.ok();
    let alias = format!("/api/v3/contents/generations/tasks/{id}");
    let alias = gateway.get(&key, &alias).await.ok();
    for answer in [&common, &alias] {
        assert_eq!(answer.json()["id"], id);
        assert_eq!(answer.json()["status"], "queued");
    }
    let shown = shown.json();
    assert_eq!(shown["model"], "maker/film");
    assert!(shown["created_at"].as_i64().unwrap() > 1_700_000_000);
    assert!(shown["updated_at"].as_i64() >= shown["created_at"].as_i64());
    // Five seconds of 720p at 10 credits per million tokens: the vendor's count, and up to a tenth more.
    let held = gateway.frozen(&key).await;
    assert!((1_089_000..1_200_000).contains(&held), "{held}");
    for (state, words) in [
        ("running", "[run]"),
        ("failed", "[fail]"),
        ("failed", "[refuse]"),
    ] {
        let id = create(&gateway, &key, &video_body(words)).await;
        let shown = wait_for_state(&gateway, &key, &id, &[state]).await;
        for secret in [
            "sim-film",
            "cgt-",
            "260128",
            "Request id",
            "priority",
            "service_tier",
        ] {
            assert!(!shown.text().contains(secret), "{secret}: {}", shown.text());
        }
    }
}

#[tokio::test]
async fn what_is_not_made_costs_nothing() {
    let (gateway, key) = builder().funded().await;
    for (words, status, code) in [
        ("[fail]", "failed", Some("InternalServiceError")),
        (
            "[refuse]",
            "failed",
            Some("OutputVideoSensitiveContentDetected.PolicyViolation"),
        ),
        ("[expire]", "expired", None),
        ("[cancel]", "cancelled", None),
    ] {
        let id = create(&gateway, &key, &video_body(words)).await;
        let shown = wait_for_end(&gateway, &key, &id).await.json();
        assert_eq!(shown["status"], status, "{shown}");
        assert_eq!(shown["error"]["code"].as_str(), code, "{shown}");
        assert_eq!(gateway.frozen(&key).await, 0, "{words}");
    }
    assert_eq!(gateway.usage(&key).await, 0);
    gateway.verify().await;
}

/// The official client sends every unset option as `null`. The upstream gets only the options that are set, under its
/// own names.
#[tokio::test]
async fn the_upstream_gets_what_is_set_and_nothing_of_ours() {
    let (gateway, key) = builder().funded().await;
    let unset = [
        "safety_identifier",
        "return_last_frame",
        "service_tier",
        "execution_expires_after",
        "priority",
        "generate_audio",
        "draft",
        "camera_fixed",
        "watermark",
        "resolution",
        "ratio",
        "frames",
        "tools",
        "output_format",
        "omni_reference_task_type",
    ];
    let unset: serde_json::Map<String, Value> = unset
        .iter()
        .map(|name| ((*name).to_owned(), Value::Null))
        .collect();
    let body = with(
        video_body("a cat --ratio 16:9 [queue]"),
        &Value::Object(unset),
    );
    let body = with(
        body,
        &json!({ "seed": 11, "callback_url": "https://c.example/told" }),
    );
    create(&gateway, &key, &body).await;
    let sent: Value = serde_json::from_slice(&gateway.sim.calls_of("sim-film")[0].body).unwrap();
    assert_eq!(
        sent,
        json!({
            "model": "sim-film", "content": [text("a cat --ratio 16:9 [queue]")], "duration": 5, "seed": 11,
        })
    );
}

/// One case for each group of rules. The tests of the protocol cover every single rule.
#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one table")]
async fn what_the_model_cannot_do_is_refused_before_the_upstream_hears_of_it() {
    let (gateway, key) = builder().funded().await;
    let image = |role: &str| json!({ "type": "image_url", "image_url": { "url": "https://x.example/a.png" }, "role": role });
    let video = json!({ "type": "video_url", "video_url": { "url": "https://x.example/a.mp4" }, "role": "reference_video" });
    let audio = json!({ "type": "audio_url", "audio_url": { "url": "https://x.example/a.mp3" }, "role": "reference_audio" });
    let of = |model: &str, content: Value, more: Value| {
        with(json!({ "model": model, "content": content }), &more)
    };
    let invalid = "invalid_request";
    for (body, code) in [
        (of("maker/film", json!([]), json!({})), invalid),
        (with(video_body("x"), &json!({ "duration": 16 })), invalid),
        (
            with(video_body("x"), &json!({ "resolution": "8k" })),
            invalid,
        ),
        (with(video_body("x"), &json!({ "ratio": "2:1" })), invalid),
        (with(video_body("x"), &json!({ "seed": -2 })), invalid),
        (
            with(video_body("x"), &json!({ "frames": 57 })),
            "unsupported_parameter",
        ),
        (
            with(video_body("x"), &json!({ "priority": 1 })),
            "unsupported_parameter",
        ),
        (
            with(video_body("x"), &json!({ "service_tier": "flex" })),
            "service_tier_not_supported",
        ),
        (
            with(video_body("x"), &json!({ "provider": "p" })),
            "routing_not_supported",
        ),
        (
            with(video_body("x"), &json!({ "storage_options": {} })),
            "stateful_not_supported",
        ),
        (
            with(
                video_body("x"),
                &json!({ "callback_url": "ftp://x.example" }),
            ),
            invalid,
        ),
        (
            with(video_body("x"), &json!({ "callback_url": "nowhere" })),
            invalid,
        ),
        (
            with(video_body("x"), &json!({ "execution_expires_after": 60 })),
            invalid,
        ),
        (
            with(video_body("x"), &json!({ "draft": true })),
            "unsupported_parameter",
        ),
        (
            of("maker/film", json!([image("last_frame")]), json!({})),
            invalid,
        ),
        (
            of(
                "maker/film",
                json!([image("first_frame"), video]),
                json!({}),
            ),
            invalid,
        ),
        (of("maker/film", json!([audio]), json!({})), invalid),
        (
            of(
                "maker/film-1.0",
                json!([text("x")]),
                json!({ "frames": 30 }),
            ),
            invalid,
        ),
        (
            of(
                "maker/film-1.0",
                json!([text("x")]),
                json!({ "duration": -1 }),
            ),
            invalid,
        ),
        (
            of(
                "maker/film-1.5",
                json!([text("x")]),
                json!({ "draft": true, "resolution": "720p" }),
            ),
            invalid,
        ),
        (
            of(
                "maker/film-1.5",
                json!([image("reference_image")]),
                json!({}),
            ),
            "model_not_supported",
        ),
        (
            of(
                "maker/film-2.5",
                json!([text("x"), video]),
                json!({ "omni_reference_task_type": "edit", "ratio": "16:9" }),
            ),
            invalid,
        ),
        (
            of("maker/chat", json!([text("x")]), json!({})),
            "model_not_supported",
        ),
    ] {
        let answer = post(&gateway, &key, &body).await;
        assert_eq!(answer.failure(), (400, code.to_owned()), "{body}");
    }
    let unknown = of("maker/none", json!([text("x")]), json!({}));
    let answer = post(&gateway, &key, &unknown).await;
    assert_eq!(answer.failure(), (404, "model_not_found".to_owned()));
    let request = Request::post(PATH)
        .json(&video_body("x"))
        .bearer(&key.secret)
        .header("idempotency-key", "1");
    let refused = (400, "idempotency_key_not_supported".to_owned());
    assert_eq!(gateway.send(&request).await.failure(), refused);
    assert_eq!(gateway.upstream_calls(), 0);
    assert_eq!(gateway.frozen(&key).await, 0);
}

/// T3: a clear refusal is reported as a refusal. Every other answer without an id is ambiguous, and the creation is not
/// repeated.
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
        let answer = post(&gateway, &key, &video_body("x")).await;
        assert_eq!(answer.status(), status, "{faults}: {}", answer.text());
        assert_eq!(answer.header("x-should-retry"), retry, "{faults}");
        for secret in ["sim-film", "Request id"] {
            assert!(!answer.text().contains(secret), "{}", answer.text());
        }
        assert_eq!(gateway.upstream_calls(), 1, "{faults}");
        assert_eq!(
            (gateway.frozen(&key).await, gateway.usage(&key).await),
            (0, 0)
        );
        gateway.verify().await;
    }
}

/// Fetches a file that a snapshot names, without a key.
async fn fetched(gateway: &TestGateway, url: &Value) -> Answer {
    let path = url.as_str().unwrap().split_once("/media/").unwrap().1;
    let request = Request::get(&format!("/media/{path}"));
    gateway.send(&request).await.ok()
}

#[tokio::test]
async fn a_result_is_kept_here_and_paid_by_its_tokens() {
    let (gateway, key) = builder().funded().await;
    let body = with(
        video_body("a boat"),
        &json!({ "return_last_frame": true, "seed": 7 }),
    );
    let id = create(&gateway, &key, &body).await;
    let answer = wait_for_end(&gateway, &key, &id).await;
    let shown = answer.json();
    let content = shown["content"].clone();
    assert_eq!(
        shown,
        json!({
            "id": id, "model": "maker/film", "status": "succeeded",
            "created_at": shown["created_at"], "updated_at": shown["updated_at"], "error": null,
            "content": { "video_url": content["video_url"], "last_frame_url": content["last_frame_url"] },
            "usage": { "completion_tokens": 108_900, "total_tokens": 108_900 },
            "seed": 7, "duration": 5, "framespersecond": 24, "resolution": "720p", "ratio": "16:9",
            "generate_audio": true, "draft": false, "execution_expires_after": 172_800,
        })
    );
    let common = gateway.get(&key, &format!("/v1/tasks/{id}")).await.ok();
    assert_eq!(common.body, answer.body);
    // 108,900 tokens at 10 credits per million.
    assert_eq!(gateway.usage(&key).await, 1_089_000);
    assert_eq!(gateway.frozen(&key).await, 0);
    assert_eq!(gateway.sim.content_tasks()[0].billed_tokens, 108_900);
    let video = fetched(&gateway, &content["video_url"]).await;
    assert_eq!(video.header("content-type"), Some("video/mp4"));
    assert_eq!(&video.body[4..12], b"ftypisom");
    let frame = fetched(&gateway, &content["last_frame_url"]).await;
    assert_eq!(frame.header("content-type"), Some("image/png"));
    // A deleted task is still charged, and its media are still served.
    assert_eq!(delete(&gateway, &key, &id).await.ok().text(), "{}");
    let gone = gateway.get(&key, &format!("{PATH}/{id}")).await;
    assert_eq!(gone.failure(), (404, "task_not_found".to_owned()));
    assert!(gateway.sim.content_tasks()[0].is_deleted);
    fetched(&gateway, &content["video_url"]).await;
    assert_eq!(gateway.usage(&key).await, 1_089_000);
    gateway.verify().await;
}

#[tokio::test]
async fn each_result_is_what_it_should_be_and_costs_what_it_should() {
    let (gateway, key) = builder().funded().await;
    let mut spent = 0;
    let small = json!({ "resolution": "480p", "duration": 4 });
    for (body, status, charge) in [
        // 864 x 480 x 97 / 1024 tokens at 5 credits per million.
        (with(video_body("small"), &small), "succeeded", 196_425),
        // A result that is not a valid video fails the task.
        (video_body("[page]"), "failed", 0),
        (video_body("[cut]"), "failed", 0),
        // An invalid picture is left out.
        (
            with(
                video_body("[bad-frame]"),
                &json!({ "return_last_frame": true }),
            ),
            "succeeded",
            1_089_000,
        ),
        // Without a usage report, the charge is the amount of the hold.
        (video_body("[unmetered]"), "succeeded", 1_146_200),
    ] {
        let id = create(&gateway, &key, &body).await;
        let shown = wait_for_end(&gateway, &key, &id).await.json();
        assert_eq!(shown["status"], status, "{body} {shown}");
        assert!(shown["content"].get("last_frame_url").is_none(), "{shown}");
        spent += charge;
        assert_eq!(gateway.usage(&key).await, spent, "{body}");
        assert_eq!(gateway.frozen(&key).await, 0, "{body}");
    }
    let mov = json!({ "model": "maker/film-2.5", "content": [text("x")], "duration": 4, "output_format": "mov" });
    let id = create(&gateway, &key, &mov).await;
    let shown = wait_for_end(&gateway, &key, &id).await.json();
    let video = fetched(&gateway, &shown["content"]["video_url"]).await;
    assert_eq!(video.header("content-type"), Some("video/quicktime"));
    gateway.verify().await;
}

#[tokio::test]
async fn a_draft_is_promoted_by_its_owner_where_it_was_made() {
    let (gateway, key) = builder().funded().await;
    gateway.wallet("other", &["--balance", "100"]).await;
    let stranger = gateway.key("other", &[]).await;
    let draft = json!({ "model": "maker/film-1.5", "content": [text("a boat")], "duration": 4, "draft": true });
    let promoted = |id: &str| {
        let item = json!({ "type": "draft_task", "draft_task": { "id": id } });
        json!({ "model": "maker/film-1.5", "content": [item], "resolution": "720p" })
    };
    let id = create(&gateway, &key, &draft).await;
    assert_eq!(
        wait_for_end(&gateway, &key, &id).await.json()["draft"],
        true
    );
    let next = create(&gateway, &key, &promoted(&id)).await;
    let shown = wait_for_end(&gateway, &key, &next).await.json();
    assert_eq!(
        (&shown["status"], &shown["draft_task_id"]),
        (&json!("succeeded"), &json!(id))
    );
    let sent: Value = serde_json::from_slice(&gateway.sim.calls_of("sim-film-1")[1].body).unwrap();
    let upstream_id = gateway.sim.content_tasks()[0].id.clone();
    assert_eq!(sent["content"][0]["draft_task"]["id"], upstream_id);

    let full = json!({ "model": "maker/film-1.5", "content": [text("x")], "duration": 4 });
    let full = create(&gateway, &key, &full).await;
    wait_for_end(&gateway, &key, &full).await;
    let waiting = with(draft.clone(), &json!({ "content": [text("[queue]")] }));
    let waiting = create(&gateway, &key, &waiting).await;
    let calls = gateway.sim.calls_of("sim-film-1").len();
    for (key, id) in [
        (&stranger, &*id),
        (&key, &*full),
        (&key, &*waiting),
        (&key, "01987654-0000-7000-8000-000000000000"),
        (&key, &*upstream_id),
    ] {
        let answer = post(&gateway, key, &promoted(id)).await;
        assert_eq!(
            answer.failure(),
            (400, "invalid_request".to_owned()),
            "{id}"
        );
    }
    assert_eq!(gateway.sim.calls_of("sim-film-1").len(), calls);
}

/// T2, T4, T9: the gateway is killed while tasks are created, polled and copied. Each task continues from its row and
/// ends once.
#[tokio::test]
async fn killed_again_and_again_each_task_ends_and_settles_once() {
    let (mut gateway, key) = builder().funded().await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        for _ in 0..2 {
            ids.push(create(&gateway, &key, &video_body("a boat [polls=3]")).await);
        }
        gateway.kill();
        gateway.verify().await;
        gateway.restart().await;
    }
    for id in &ids {
        assert_eq!(
            wait_for_end(&gateway, &key, id).await.json()["status"],
            "succeeded"
        );
    }
    assert_eq!(gateway.usage(&key).await, 6 * 1_089_000);
    assert_eq!(gateway.frozen(&key).await, 0);
    gateway.verify().await;
}

#[tokio::test]
async fn searches_without_a_price_are_refused_if_the_operator_says_so() {
    for refuses in [false, true] {
        let setting = format!("refuse_unpriced_tools = {refuses}");
        let builder = builder().setting("ledger", &setting);
        let (gateway, key) = builder.funded().await;
        let tools = json!({ "tools": [{ "type": "web_search" }] });
        let body = with(video_body("a boat"), &tools);
        let request = Request::post("/v1/contents/generations/tasks").json(&body);
        let answer = gateway.send(&request.bearer(&key.secret)).await;
        if refuses {
            assert_eq!(answer.failure(), (400, "unsupported_parameter".to_owned()));
            assert_eq!(gateway.upstream_calls(), 0);
        } else {
            answer.ok();
        }
    }
}
