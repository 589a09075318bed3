//! Videos at Vertex AI: created, polled by a POST to the model, copied, and billed by the second.

use serde_json::json;

use crate::harness::{GatewayBuilder, Key, TestGateway};
use crate::tasks::predict::{create, done, video_body};

const ENTRIES: &str = r#"
[[channel]]
name = "vertex"
preset = "vertex"
base_url = "http://SIM"
account = { project = "acme-project-7788", location = "us-central1" }
credential = { file = "account.json" }
[[model]]
id = "maker/film"
kind = "video"
routes = [{ channel = "vertex", model = "sim-film" }]
price = { video_second = { default = "0.1", 1080p = "0.15", 4k = "0.3" } }
profile = { base = "predict-3.1" }
"#;

/// The path of the model, which contains the project.
const PATH: &str =
    "/v1/projects/acme-project-7788/locations/us-central1/publishers/google/models/sim-film";

async fn gateway() -> (TestGateway, Key) {
    GatewayBuilder::default()
        .entries(ENTRIES)
        .file("account.json", &sim::service_account("http://SIM/token"))
        .setting("tasks", "poll_first_ms = 20")
        .setting("tasks", "poll_max_ms = 40")
        .funded()
        .await
}

#[tokio::test]
async fn a_video_is_polled_kept_and_billed() {
    let (gateway, key) = gateway().await;
    let mut body = video_body("a paper boat");
    body["parameters"] = json!({ "durationSeconds": 6 });
    let name = create(&gateway, &key, &body).await;
    let shown = done(&gateway, &key, &name).await;
    let text = shown.text();
    for sign in [
        "acme-project",
        "us-central1",
        "publishers",
        "sim-film",
        "bytesBase64",
    ] {
        assert!(!text.contains(sign), "{sign} in {text}");
    }
    let shown = shown.json();
    let video = &shown["response"]["generateVideoResponse"]["generatedSamples"][0]["video"];
    assert!(video["uri"].is_string(), "{shown}");
    assert_eq!(
        (gateway.frozen(&key).await, gateway.usage(&key).await),
        (0, 600_000)
    );

    let calls = gateway.sim.calls();
    let created = calls
        .iter()
        .filter(|call| call.path == format!("{PATH}:predictLongRunning"));
    assert_eq!(created.count(), 1);
    let polled = format!("{PATH}:fetchPredictOperation");
    let polls: Vec<_> = calls.iter().filter(|call| call.path == polled).collect();
    assert!(!polls.is_empty());
    for poll in polls {
        let body: serde_json::Value = serde_json::from_slice(&poll.body).unwrap();
        let operation = body["operationName"].as_str().unwrap();
        assert!(
            operation.starts_with(PATH.trim_start_matches("/v1/")),
            "{operation}"
        );
    }
    gateway.verify().await;
}

#[tokio::test]
async fn a_video_that_was_not_made_costs_nothing_and_says_why() {
    let (gateway, key) = gateway().await;
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
async fn polls_that_fail_are_repeated() {
    let (gateway, key) = gateway().await;
    for faults in ["status=503", "status=429", "garbage", "cut=content"] {
        gateway
            .sim
            .queue_faults("poll/sim-film", faults, 1)
            .unwrap();
        let before = gateway.usage(&key).await;
        let name = create(&gateway, &key, &video_body("a paper boat")).await;
        let shown = done(&gateway, &key, &name).await.json();
        assert!(shown["response"].is_object(), "{faults}: {shown}");
        assert_eq!(gateway.usage(&key).await - before, 800_000, "{faults}");
    }
    gateway.verify().await;
}

/// Every further poll would get the same answer, and the channel is not at fault.
#[tokio::test]
async fn a_video_that_is_too_large_fails_its_task_once_and_blames_no_channel() {
    let (gateway, key) = gateway().await;
    // Five failures in a row would open the breaker.
    let tasks = 6;
    gateway
        .sim
        .queue_faults("poll/sim-film", "endless-line", tasks)
        .unwrap();
    for _ in 0..tasks {
        let name = create(&gateway, &key, &video_body("a paper boat")).await;
        let message = "The video is larger than 48 MiB and could not be kept.";
        let expected =
            json!({ "name": name, "done": true, "error": { "code": 13, "message": message } });
        assert_eq!(done(&gateway, &key, &name).await.json(), expected);
        assert_eq!(
            (gateway.frozen(&key).await, gateway.usage(&key).await),
            (0, 0)
        );
    }
    let polls = gateway.sim.calls_of("poll/sim-film").len();
    assert_eq!(polls, usize::try_from(tasks).unwrap());
    let metrics = gateway.admin_get("/metrics").await.ok();
    let closed = "tollgate_channel_state{channel=\"vertex\",state=\"closed\"} 1";
    assert!(metrics.text().contains(closed), "{}", metrics.text());
    // The next video succeeds.
    let name = create(&gateway, &key, &video_body("a paper boat")).await;
    let shown = done(&gateway, &key, &name).await.json();
    assert!(shown["response"].is_object(), "{shown}");
    gateway.verify().await;
}
