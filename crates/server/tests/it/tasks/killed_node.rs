//! `kill -9` at each named point of a task's life (T1, T3, T4, T9, C1). In every case each task ends once and is
//! settled once, and the ledger verifies. A callback is sent one to four times with the bytes of a lookup.

use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::copied_results::count_files;
use super::every_protocol::listed;
use super::{content_task_lists, content_tasks, predict, videos};
use crate::harness::{
    Connection, GatewayBuilder, Key, Receiver, Reply, Request, TestGateway, eventually, within,
};

/// The cost of eight seconds of video in micro-credits, both as the upstream reports it and by the second.
const VIDEO_COST: u64 = 800_000;

/// Allows callbacks and media on this machine.
fn allow_loopback(builder: GatewayBuilder) -> GatewayBuilder {
    builder.setting("outbound", "allow = [\"127.0.0.0/8\"]")
}

fn with_callback(mut body: Value, receiver: &Receiver) -> Value {
    body["callback_url"] = json!(receiver.url);
    body
}

/// Sends `kill -9`, verifies the ledger and restarts the gateway.
async fn kill(gateway: &mut TestGateway) {
    gateway.kill();
    gateway.verify().await;
    gateway.restart().await;
}

/// Asserts that there is one task, that it cost this much, and that its callback was delivered one to four times with
/// the bytes of a lookup. Returns the answer to the lookup.
async fn assert_ended_once(
    gateway: &TestGateway,
    key: &Key,
    receiver: &Receiver,
    cost: u64,
) -> Value {
    receiver.wait_for(1).await;
    let rows = listed(gateway, &[]).await;
    assert_eq!(rows.len(), 1, "{rows:?}");
    let id = rows[0]["id"].as_str().unwrap();
    let row = eventually("the note of the delivery", async || {
        let row = gateway.cli_json(&["tasks", "show", id]).await;
        (row["callback_outcome"] == "delivered").then_some(row)
    })
    .await;
    let shown = gateway.get(key, &format!("/v1/tasks/{id}")).await.ok();
    let deliveries = receiver.deliveries();
    assert!((1..=4).contains(&deliveries.len()), "{deliveries:?}");
    // A crash uses up an attempt, even if no byte of this attempt has reached the receiver.
    let attempts = row["callback_attempts"].as_u64().unwrap();
    assert!(
        (deliveries.len() as u64..=4).contains(&attempts),
        "{attempts}"
    );
    for delivery in deliveries {
        assert_eq!(delivery.body, shown.body);
        assert!(
            delivery
                .head
                .contains(&format!("\r\nidempotency-key: {id}\r\n"))
        );
    }
    assert_eq!(gateway.usage(key).await, cost);
    assert_eq!(gateway.frozen(key).await, 0);
    gateway.verify().await;
    shown.json()
}

/// Sends a creation and does not wait for its answer.
async fn send_creation(gateway: &TestGateway, key: &Key, body: &Value) -> Connection {
    let mut caller = Connection::open(gateway.address()).await;
    let request = Request::post("/v1/videos/generations")
        .json(body)
        .bearer(&key.secret);
    caller.send(&request).await;
    caller
}

/// `kill@task_row`: the row exists, but no byte of the creation has been sent.
#[tokio::test]
async fn killed_before_its_creation_is_sent_the_task_fails_and_nobody_heard_of_it() {
    // The upstream accepts connections but never answers the handshake.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let entries = format!(
        "[[channel]]
        name = \"silent\"
        preset = \"sim\"
        base_url = \"https://{}/v1\"
        [[model]]
        id = \"maker/unheard\"
        kind = \"video\"
        routes = [{{ channel = \"silent\", model = \"sim-video\" }}]
        price = {{ video_second = \"0.05\" }}
        profile = {{ base = \"video-a\" }}",
        silent.local_addr().unwrap()
    );
    let builder = allow_loopback(videos::builder()).entries(&entries);
    let (mut gateway, key) = builder.funded().await;
    let receiver = Receiver::start(&[200]).await;
    let body = json!({ "model": "maker/unheard", "prompt": "x" });
    let caller = send_creation(&gateway, &key, &with_callback(body, &receiver)).await;
    let (_handshake, _) = silent.accept().await.unwrap();
    kill(&mut gateway).await;
    drop(caller);
    let shown = assert_ended_once(&gateway, &key, &receiver, 0).await;
    assert_eq!(shown["status"], "failed", "{shown}");
}

/// `kill@created`: the upstream has received the creation, but its answer is lost.
#[tokio::test]
async fn killed_before_its_creation_is_answered_the_task_fails_and_was_sent_once() {
    let (mut gateway, key) = allow_loopback(videos::builder()).funded().await;
    let receiver = Receiver::start(&[200]).await;
    gateway
        .sim
        .queue_faults("sim-video", "hang=head", 1)
        .unwrap();
    let caller = send_creation(
        &gateway,
        &key,
        &with_callback(videos::video_body("x"), &receiver),
    )
    .await;
    eventually("the creation", async || {
        (gateway.upstream_calls() == 1).then_some(())
    })
    .await;
    kill(&mut gateway).await;
    drop(caller);
    let shown = assert_ended_once(&gateway, &key, &receiver, 0).await;
    assert_eq!(shown["status"], "failed", "{shown}");
    assert_eq!(gateway.upstream_calls(), 1);
}

/// `kill@poll`: the task continues from its row.
#[tokio::test]
async fn killed_in_a_poll_the_task_goes_on_from_its_row() {
    let (mut gateway, key) = allow_loopback(videos::builder()).funded().await;
    let receiver = Receiver::start(&[200]).await;
    gateway
        .sim
        .queue_faults("poll/sim-video", "hang=head", 1)
        .unwrap();
    let body = with_callback(videos::video_body("a boat"), &receiver);
    videos::create(&gateway, &key, &body).await;
    eventually("the poll", async || {
        (gateway.upstream_calls() == 2).then_some(())
    })
    .await;
    kill(&mut gateway).await;
    let shown = assert_ended_once(&gateway, &key, &receiver, VIDEO_COST).await;
    assert_eq!(shown["status"], "done", "{shown}");
}

/// `kill@copy`: a part of the video has been copied. The next copy replaces it under the same name.
#[tokio::test]
async fn killed_in_the_copy_of_its_film_the_task_has_one_film() {
    let (mut gateway, key) = allow_loopback(predict::builder()).funded().await;
    let receiver = Receiver::start(&[200]).await;
    gateway
        .sim
        .queue_faults("file/sim-film", "hang=content", 1)
        .unwrap();
    let body = with_callback(predict::video_body("a street"), &receiver);
    predict::create(&gateway, &key, &body).await;
    let media = gateway.folder().join("tollgate-data/media");
    eventually("a part of the film", async || {
        let parts = std::fs::read_dir(media.join("incoming")).unwrap();
        let mut parts = parts.filter_map(|part| part.unwrap().metadata().ok());
        parts.any(|part| part.len() > 0).then_some(())
    })
    .await;
    assert_eq!(count_files(&media), 0);
    kill(&mut gateway).await;
    let shown = assert_ended_once(&gateway, &key, &receiver, VIDEO_COST).await;
    let samples = &shown["response"]["generateVideoResponse"]["generatedSamples"];
    assert!(samples[0]["video"]["uri"].is_string(), "{shown}");
    assert_eq!(count_files(&media), 1);
}

/// `kill@terminal`: the upstream has reported the end. The commit has not begun, is under way, or is done.
#[tokio::test]
async fn killed_around_its_last_commit_the_task_is_settled_once() {
    const ROUNDS: usize = 5;
    for round in 0..ROUNDS {
        let (mut gateway, key) = allow_loopback(videos::builder()).funded().await;
        let receiver = Receiver::start(&[200]).await;
        let body = with_callback(videos::video_body("a boat [polls=1]"), &receiver);
        videos::create(&gateway, &key, &body).await;
        // Wait for the creation, one poll of the running task, and the final poll.
        within("the last poll", async {
            while gateway.sim.stats().completed < 3 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        // Kill slightly later in each round.
        for _ in 0..round * 200 {
            tokio::task::yield_now().await;
        }
        kill(&mut gateway).await;
        let shown = assert_ended_once(&gateway, &key, &receiver, VIDEO_COST).await;
        assert_eq!(shown["status"], "done", "{shown}");
    }
}

/// `kill@callback`: a crash uses up the attempt, and the next one sends the same bytes.
#[tokio::test]
async fn killed_in_a_callback_the_end_is_told_again_with_equal_bytes() {
    let (mut gateway, key) = allow_loopback(videos::builder()).funded().await;
    // The receiver takes the first delivery and never answers.
    let receiver = Receiver::replying(vec![Reply::Never, Reply::Status(200)]).await;
    let body = with_callback(videos::video_body("x"), &receiver);
    videos::create(&gateway, &key, &body).await;
    receiver.wait_for(1).await;
    kill(&mut gateway).await;
    assert_eq!(receiver.wait_for(2).await.len(), 2);
    assert_ended_once(&gateway, &key, &receiver, VIDEO_COST).await;
}

/// Killed during a deletion: the task shows what the upstream has done, and the caller can repeat the deletion.
#[tokio::test]
async fn killed_in_a_deletion_a_task_is_cancelled_or_still_in_view() {
    let (mut gateway, key) = content_tasks::builder().funded().await;
    let waiting =
        content_tasks::create(&gateway, &key, &content_tasks::video_body("[queue]")).await;
    content_tasks::wait_for_state(&gateway, &key, &waiting, &["queued"]).await;
    let failed = content_tasks::create(&gateway, &key, &content_tasks::video_body("[fail]")).await;
    content_tasks::wait_for_end(&gateway, &key, &failed).await;
    let faults = gateway.sim.queue_faults("delete/sim-film", "hang=head", 2);
    faults.unwrap();
    let mut callers = Vec::new();
    for id in [&waiting, &failed] {
        let mut caller = Connection::open(gateway.address()).await;
        let target = format!("/v1/contents/generations/tasks/{id}");
        let request = Request::new("DELETE", &target).bearer(&key.secret);
        caller.send(&request).await;
        callers.push(caller);
    }
    eventually("both deletions upstream", async || {
        let tasks = gateway.sim.content_tasks();
        (tasks[0].status == "cancelled" && tasks[1].is_deleted).then_some(())
    })
    .await;
    kill(&mut gateway).await;
    let shown = content_tasks::wait_for_end(&gateway, &key, &waiting)
        .await
        .json();
    assert_eq!(shown["status"], "cancelled", "{shown}");
    assert_eq!(
        (gateway.frozen(&key).await, gateway.usage(&key).await),
        (0, 0)
    );
    let shown = content_tasks::wait_for_end(&gateway, &key, &failed)
        .await
        .json();
    assert_eq!(shown["status"], "failed", "{shown}");
    content_task_lists::delete(&gateway, &key, &failed)
        .await
        .ok();
    let gone = gateway.get(&key, &format!("/v1/tasks/{failed}")).await;
    assert_eq!(gone.failure(), (404, "task_not_found".to_owned()));
    gateway.verify().await;
}
