//! S5: upstream answers about tasks stay within the node's memory and leave enough for callers.

use serde_json::json;

use super::{omni, videos};
use crate::harness::{GatewayBuilder, Key, TestGateway, ask, eventually, with};

/// More than the number of failures that opens a channel's breaker.
const POLLS: u32 = 8;

/// Tasks may use half of this memory, 512 KiB. An answer above 256 KiB is charged twice, so it does not fit.
fn small(builder: GatewayBuilder) -> GatewayBuilder {
    builder.setting("limits", "body_memory_bytes = 1048576")
}

async fn channel_is(gateway: &TestGateway, wanted: &str) -> bool {
    let line = format!("tollgate_channel_state{{channel=\"main\",state=\"{wanted}\"}} 1");
    gateway.admin_get("/metrics").await.text().contains(&line)
}

/// Sends a request that needs nearly all the memory for large bodies, which is seven eighths of the total.
async fn all_memory_is_free(gateway: &TestGateway, key: &Key) {
    let body = with(ask("hello"), &json!({ "user": "x".repeat(910_000) }));
    gateway.chat(key, &body).await.ok();
}

#[tokio::test]
async fn a_poll_that_there_is_no_memory_for_ends_no_task_and_blames_no_channel() {
    let (gateway, key) = small(videos::builder()).funded().await;
    gateway
        .sim
        .queue_faults("poll/sim-video", "endless-line", POLLS)
        .unwrap();
    let id = videos::create(&gateway, &key, &videos::video_body("a boat")).await;
    eventually("the polls", async || {
        (gateway.upstream_calls() > u64::from(POLLS)).then_some(())
    })
    .await;
    assert!(channel_is(&gateway, "closed").await);
    let shown = videos::wait_for_end(&gateway, &key, &id).await.json();
    assert_eq!(shown["status"], "done", "{shown}");
    assert!(channel_is(&gateway, "closed").await);
    all_memory_is_free(&gateway, &key).await;
    gateway.verify().await;
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_the_channels_fault_and_no_end() {
    let (gateway, key) = videos::builder().funded().await;
    // Five failures in a row open the breaker.
    gateway
        .sim
        .queue_faults("poll/sim-video", "endless-line", 5)
        .unwrap();
    let id = videos::create(&gateway, &key, &videos::video_body("a boat [polls=100000]")).await;
    eventually("the channel's trouble", async || {
        channel_is(&gateway, "open").await.then_some(())
    })
    .await;
    let shown = gateway.get(&key, &format!("/v1/tasks/{id}")).await.ok();
    assert_eq!(shown.json()["status"], "pending");
}

/// The result cannot be fetched again, so the task fails as one with an unknown outcome.
#[tokio::test]
async fn a_result_that_there_is_no_memory_for_fails_its_task_at_no_charge() {
    let (gateway, key) = small(omni::builder()).funded().await;
    gateway
        .sim
        .queue_faults("sim-omni", "endless-line", 1)
        .unwrap();
    let id = omni::create(&gateway, &key, &omni::video_body("x")).await;
    let shown = omni::wait_for_end(&gateway, &key, &id).await.json();
    assert_eq!(shown["status"], "failed", "{shown}");
    assert_eq!(
        (gateway.frozen(&key).await, gateway.usage(&key).await),
        (0, 0)
    );
    assert!(channel_is(&gateway, "closed").await);
    // There is memory for the next result.
    let id = omni::create(&gateway, &key, &omni::video_body("[inline]")).await;
    let shown = omni::wait_for_end(&gateway, &key, &id).await.json();
    assert_eq!(shown["status"], "completed", "{shown}");
    all_memory_is_free(&gateway, &key).await;
    gateway.verify().await;
}
