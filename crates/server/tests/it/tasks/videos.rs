//! Video-A tasks: creation, polling and settlement, also with `kill -9` in between.

use serde_json::{Value, json};

use crate::harness::{Answer, GatewayBuilder, Key, Request, TestGateway, eventually};

pub(crate) const ENTRIES: &str = r#"
[[model]]
id = "maker/video"
kind = "video"
routes = [{ channel = "main", model = "sim-video" }]
price = { video_second = { default = "0.05", 720p = "0.07" }, usd = "2" }
profile = { base = "video-a" }
[[model]]
id = "maker/small"
kind = "video"
routes = [{ channel = "main", model = "sim-small" }]
price = { video_second = "0.05" }
profile = { base = "video-a", resolutions = ["480p"], modes = ["text"], durations = { min = 2, max = 6 } }
"#;

pub(crate) fn builder() -> GatewayBuilder {
    GatewayBuilder::default()
        .entries(ENTRIES)
        .setting("tasks", "poll_first_ms = 20")
        .setting("tasks", "poll_max_ms = 40")
        .setting("tasks", "callback_retry_ms = [20, 30, 40]")
}

pub(crate) fn video_body(prompt: &str) -> Value {
    json!({ "model": "maker/video", "prompt": prompt })
}

pub(crate) async fn post(gateway: &TestGateway, key: &Key, path: &str, body: &Value) -> Answer {
    let request = Request::post(path).json(body).bearer(&key.secret);
    gateway.send(&request).await
}

pub(crate) async fn create(gateway: &TestGateway, key: &Key, body: &Value) -> String {
    let answer = post(gateway, key, "/v1/videos/generations", body)
        .await
        .ok();
    let members: Vec<_> = answer.json().as_object().unwrap().keys().cloned().collect();
    assert_eq!(members, ["request_id"]);
    answer.json()["request_id"].as_str().unwrap().to_owned()
}

/// Waits until the task has ended, and returns the answer to the lookup.
pub(crate) async fn wait_for_end(gateway: &TestGateway, key: &Key, id: &str) -> Answer {
    eventually("the end of the task", async || {
        let answer = gateway.get(key, &format!("/v1/tasks/{id}")).await.ok();
        (answer.json()["status"] != "pending").then_some(answer)
    })
    .await
}

#[tokio::test]
async fn a_task_is_followed_to_its_end_and_settled_on_the_reported_cost() {
    let (gateway, key) = builder().funded().await;
    let body = json!({ "model": "maker/video", "prompt": "a boat [polls=3]", "seconds": "6", "user": null });
    let id = create(&gateway, &key, &body).await;
    // Six seconds at 0.05 credits, held until the task ends.
    let held = gateway.frozen(&key).await;
    assert!(held == 300_000 || held == 0, "{held}");
    let answer = wait_for_end(&gateway, &key, &id).await;
    let shown = answer.json();
    let url = shown["video"]["url"].as_str().unwrap().to_owned();
    assert_eq!(
        shown,
        json!({
            "request_id": id, "status": "done", "progress": 100, "model": "maker/video",
            "video": { "url": url, "duration": 6, "respect_moderation": true },
            "usage": { "cost_in_usd_ticks": 3_000_000_000_u64 },
        })
    );
    // The path that the protocol's own clients poll returns the same bytes.
    let native = gateway.get(&key, &format!("/v1/videos/{id}")).await.ok();
    assert_eq!(native.body, answer.body);
    // 0.3 dollars at 2 credits per dollar.
    assert_eq!(gateway.usage(&key).await, 600_000);
    assert_eq!(gateway.frozen(&key).await, 0);
    gateway.verify().await;
    // The URL leads to the upstream's own file, which is a valid video.
    let path = url.split_once("/v1/").unwrap().1;
    let mut upstream = crate::harness::Connection::open(gateway.sim.address()).await;
    upstream.send(&Request::get(&format!("/v1/{path}"))).await;
    let file = upstream.answer().await.ok();
    assert_eq!(file.header("content-type"), Some("video/mp4"));
    assert_eq!(&file.body[4..12], b"ftypisom");
}

#[tokio::test]
async fn a_task_is_seen_by_its_own_wallet_alone() {
    let (gateway, key) = builder().funded().await;
    let id = create(&gateway, &key, &video_body("a boat")).await;
    gateway.wallet("other", &[]).await;
    let stranger = gateway.key("other", &[]).await;
    let brother = gateway.key("w", &[]).await;
    gateway.get(&brother, &format!("/v1/tasks/{id}")).await.ok();
    let foreign = gateway.get(&stranger, &format!("/v1/tasks/{id}")).await;
    assert_eq!(foreign.failure(), (404, "task_not_found".to_owned()));
    for missing in ["01987654-0000-7000-8000-000000000000", "nothing", ""] {
        let missing = gateway
            .get(&stranger, &format!("/v1/tasks/{missing}"))
            .await;
        assert_eq!(missing.status(), 404);
        assert_eq!(missing.body, foreign.body);
    }
}

#[tokio::test]
async fn each_end_costs_what_it_should() {
    let (gateway, key) = builder().funded().await;
    let mut spent = 0;
    for (prompt, status, charge) in [
        ("[fail]", "failed", 0),
        ("[expire]", "expired", 0),
        // Eight seconds cost 0.4 dollars at 2 credits per dollar, even if moderation refuses the finished video.
        ("[refuse]", "failed", 800_000),
        ("[withhold]", "done", 800_000),
        ("[withhold] [unpriced]", "done", 0),
        // Without a result the task fails at no charge, even if a cost is reported.
        ("[nothing]", "failed", 0),
        ("[nothing] [unpriced]", "failed", 0),
        // If no cost is reported, the charge is by the second.
        ("[unpriced]", "done", 400_000),
    ] {
        let id = create(&gateway, &key, &video_body(prompt)).await;
        let shown = wait_for_end(&gateway, &key, &id).await.json();
        assert_eq!(shown["status"], status, "{shown}");
        assert!(!shown.to_string().contains("sim-video"), "{shown}");
        spent += charge;
        assert_eq!(gateway.usage(&key).await, spent, "{prompt}");
        assert_eq!(gateway.frozen(&key).await, 0, "{prompt}");
    }
    gateway.verify().await;
}

#[tokio::test]
async fn what_the_model_cannot_do_is_refused_before_the_upstream_hears_of_it() {
    let (gateway, key) = builder().funded().await;
    let small = |more: Value| {
        let mut body = json!({ "model": "maker/small", "prompt": "x" });
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        body
    };
    let url = json!({ "url": "https://x.example/a" });
    for (path, body, code) in [
        (
            "generations",
            small(json!({ "resolution": "720p" })),
            "invalid_request",
        ),
        (
            "generations",
            small(json!({ "duration": 8 })),
            "invalid_request",
        ),
        (
            "generations",
            small(json!({ "image": url })),
            "model_not_supported",
        ),
        (
            "edits",
            small(json!({ "video": url })),
            "model_not_supported",
        ),
        (
            "generations",
            small(json!({ "output": {} })),
            "stateful_not_supported",
        ),
        (
            "generations",
            small(json!({ "route": "x" })),
            "routing_not_supported",
        ),
        (
            "generations",
            small(json!({ "callback_url": "ftp://x.example" })),
            "invalid_request",
        ),
        (
            "generations",
            small(json!({ "callback_url": "nowhere" })),
            "invalid_request",
        ),
        (
            "generations",
            json!({ "model": "maker/chat", "prompt": "x" }),
            "model_not_supported",
        ),
    ] {
        let answer = post(&gateway, &key, &format!("/v1/videos/{path}"), &body).await;
        assert_eq!(answer.failure(), (400, code.to_owned()), "{body}");
    }
    let request = Request::post("/v1/videos/generations")
        .json(&video_body("x"))
        .bearer(&key.secret)
        .header("idempotency-key", "1");
    let answer = gateway.send(&request).await;
    assert_eq!(
        answer.failure(),
        (400, "idempotency_key_not_supported".to_owned())
    );
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
        gateway.sim.queue_faults("sim-video", faults, 1).unwrap();
        let answer = post(&gateway, &key, "/v1/videos/generations", &video_body("x")).await;
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

/// T11: a failed poll does not end the task.
#[tokio::test]
async fn polls_that_fail_do_not_end_a_task() {
    let (gateway, key) = builder().funded().await;
    for faults in [
        "status=500",
        "status=404",
        "wrong-type",
        "reset=head",
        "status=503",
    ] {
        gateway
            .sim
            .queue_faults("poll/sim-video", faults, 1)
            .unwrap();
    }
    let id = create(&gateway, &key, &video_body("x")).await;
    assert_eq!(
        wait_for_end(&gateway, &key, &id).await.json()["status"],
        "done"
    );
    gateway.verify().await;
}

/// T2, T4: the gateway is killed while tasks are created and polled. Each task continues from its row, ends once and is
/// settled once.
#[tokio::test]
async fn killed_again_and_again_each_task_ends_and_settles_once() {
    let (mut gateway, key) = builder().funded().await;
    let mut ids = Vec::new();
    for _ in 0..4 {
        for _ in 0..3 {
            ids.push(create(&gateway, &key, &video_body("a boat [polls=4]")).await);
        }
        gateway.kill();
        gateway.verify().await;
        gateway.restart().await;
    }
    for id in &ids {
        assert_eq!(
            wait_for_end(&gateway, &key, id).await.json()["status"],
            "done"
        );
    }
    assert_eq!(gateway.usage(&key).await, 12 * 800_000);
    assert_eq!(gateway.frozen(&key).await, 0);
    gateway.verify().await;
}
