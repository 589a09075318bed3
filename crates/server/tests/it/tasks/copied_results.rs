//! Results of tasks: copied from the upstream into our storage, and served to anyone who has their URL.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{
    ACCESS_KEY, BUCKET, GatewayBuilder, Key, Request, S3, SECRET_KEY, TestGateway, eventually,
};

const ENTRIES: &str = r#"
[[model]]
id = "maker/film"
kind = "video"
routes = [{ channel = "main", model = "sim-film" }]
price = { video_second = "0.1" }
profile = { base = "predict-3.1" }
"#;
/// The charge for eight seconds.
const CHARGE: u64 = 800_000;

fn builder() -> GatewayBuilder {
    GatewayBuilder::default()
        .entries(ENTRIES)
        .setting("tasks", "poll_first_ms = 20")
        .setting("tasks", "poll_max_ms = 40")
        .setting("outbound", "allow = [\"127.0.0.0/8\"]")
}

async fn create(gateway: &TestGateway, key: &Key, prompt: &str) -> String {
    let body = json!({ "instances": [{ "prompt": prompt }] });
    let request = Request::post("/v1beta/models/maker/film:predictLongRunning")
        .json(&body)
        .header("x-goog-api-key", &key.secret);
    let shown = gateway.send(&request).await.ok().json();
    shown["name"].as_str().unwrap().to_owned()
}

async fn look_up(gateway: &TestGateway, key: &Key, name: &str) -> Value {
    let request = Request::get(&format!("/v1beta/{name}"));
    let request = request.header("x-goog-api-key", &key.secret);
    gateway.send(&request).await.ok().json()
}

async fn done(gateway: &TestGateway, key: &Key, name: &str) -> Value {
    eventually("the end of the operation", async || {
        let shown = look_up(gateway, key, name).await;
        (shown["done"] == true).then_some(shown)
    })
    .await
}

/// Fetches the video of an operation from the URL in its snapshot, without a key.
async fn fetch(gateway: &TestGateway, shown: &Value) -> Vec<u8> {
    let samples = &shown["response"]["generateVideoResponse"]["generatedSamples"];
    let uri = samples[0]["video"]["uri"].as_str();
    let uri = uri.unwrap_or_else(|| panic!("no film: {shown}"));
    // No public URL is configured, so the gateway uses the address it listens on.
    let home = format!("http://{}", gateway.address());
    let target = uri.strip_prefix(&home).unwrap();
    let answer = gateway.send(&Request::get(target)).await.ok();
    assert_eq!(answer.header("content-type"), Some("video/mp4"));
    assert_eq!(answer.body.get(4..8), Some(&b"ftyp"[..]));
    answer.body
}

/// Waits until a copy has ended with this outcome.
async fn copied(gateway: &TestGateway, outcome: &str) {
    let counter = format!("tollgate_media_copies_total{{outcome=\"{outcome}\"}} ");
    eventually(outcome, async || {
        let metrics = gateway.admin_get("/metrics").await.ok();
        metrics.text().contains(&counter).then_some(())
    })
    .await;
}

/// The number of complete files in a media folder.
pub(crate) fn count_files(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).unwrap();
    let files = entries.filter(|entry| entry.as_ref().unwrap().path().is_file());
    files.count()
}

#[tokio::test]
async fn a_result_is_ours_wherever_the_upstream_had_it() {
    let (gateway, key) = builder().funded().await;
    let upstream = gateway.sim.address().to_string();
    for (number, prompt) in ["", "[redirect]", "[inline]", "[vertex]"]
        .iter()
        .enumerate()
    {
        let name = create(&gateway, &key, &format!("a street {prompt}")).await;
        let shown = done(&gateway, &key, &name).await;
        fetch(&gateway, &shown).await;
        assert!(!shown.to_string().contains(&upstream), "{shown}");
        let charged = CHARGE * (u64::try_from(number).unwrap() + 1);
        assert_eq!(gateway.usage(&key).await, charged, "{prompt}");
    }
    assert_eq!(
        count_files(&gateway.folder().join("tollgate-data/media")),
        4
    );
    assert_eq!(gateway.frozen(&key).await, 0);
    gateway.verify().await;
}

#[tokio::test]
async fn a_result_is_kept_in_a_bucket_too() {
    let s3 = S3::start().await;
    let (gateway, key) = builder()
        .setting("media", &format!("url = \"s3://{BUCKET}/videos\""))
        .setting("media", &format!("endpoint = \"http://{}\"", s3.address))
        .setting("media", "access_key_id = { file = \"s3-id\" }")
        .setting("media", "secret_access_key = { file = \"s3-secret\" }")
        .file("s3-id", ACCESS_KEY)
        .file("s3-secret", SECRET_KEY)
        .funded()
        .await;
    let name = create(&gateway, &key, "a street").await;
    let shown = done(&gateway, &key, &name).await;
    fetch(&gateway, &shown).await;
    let spool = gateway.folder().join("tollgate-data/media-spool");
    assert_eq!(count_files(&spool), 0);
    gateway.verify().await;
}

#[tokio::test]
async fn what_is_no_film_fails_the_task_at_no_charge() {
    let (gateway, key) = builder().funded().await;
    let name = create(&gateway, &key, "a street [broken]").await;
    let shown = done(&gateway, &key, &name).await;
    assert!(shown["error"]["message"].is_string(), "{shown}");
    assert_eq!(
        (gateway.frozen(&key).await, gateway.usage(&key).await),
        (0, 0)
    );
    assert_eq!(
        count_files(&gateway.folder().join("tollgate-data/media")),
        0
    );
    gateway.verify().await;
}

#[tokio::test]
async fn trouble_with_the_file_is_no_end() {
    let (gateway, key) = builder().funded().await;
    for faults in ["status=404", "status=503", "reset=head", "status=403"] {
        gateway
            .sim
            .queue_faults("file/sim-film", faults, 1)
            .unwrap();
    }
    let name = create(&gateway, &key, "a street").await;
    let shown = done(&gateway, &key, &name).await;
    fetch(&gateway, &shown).await;
    for outcome in ["stale", "later", "kept"] {
        copied(&gateway, outcome).await;
    }
    assert_eq!(gateway.usage(&key).await, CHARGE);
    gateway.verify().await;
}

#[tokio::test]
async fn a_task_outlasts_its_storage_and_its_node() {
    let (mut gateway, key) = builder().funded().await;
    let media = gateway.folder().join("tollgate-data/media");
    let away = gateway.folder().join("away");
    std::fs::rename(&media, &away).unwrap();
    let name = create(&gateway, &key, "a street").await;
    copied(&gateway, "later").await;
    assert_ne!(look_up(&gateway, &key, &name).await["done"], true);
    assert_eq!(gateway.usage(&key).await, 0);
    gateway.kill();
    std::fs::rename(&away, &media).unwrap();
    gateway.restart().await;
    let shown = done(&gateway, &key, &name).await;
    fetch(&gateway, &shown).await;
    assert_eq!(count_files(&media), 1);
    assert_eq!(gateway.usage(&key).await, CHARGE);
    gateway.verify().await;
}
