//! Callbacks: the end of a task is delivered to the URL that its creator named, in every protocol.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::every_protocol::listed;
use super::{content_task_lists, content_tasks, omni, predict, videos};
use crate::harness::{GatewayBuilder, Key, Receiver, TestGateway, eventually};

/// Allows callbacks to this machine.
fn allow_loopback(builder: GatewayBuilder) -> GatewayBuilder {
    builder.setting("outbound", "allow = [\"127.0.0.0/8\"]")
}

fn with_callback(mut body: Value, url: &str) -> Value {
    body["callback_url"] = json!(url);
    body
}

/// Asserts that the end of a task was delivered in this many attempts, each with the bytes that a lookup returns
/// (`docs/api/videos.md`).
async fn assert_delivered(
    (gateway, key): &(TestGateway, Key),
    receiver: &Receiver,
    (id, shown): (&str, &[u8]),
    attempts: usize,
) {
    let deliveries = receiver.wait_for(attempts).await;
    let row = eventually("the note of the delivery", async || {
        let row = gateway.cli_json(&["tasks", "show", id]).await;
        row["callback_outcome"].is_string().then_some(row)
    })
    .await;
    assert_eq!(row["callback_attempts"], attempts);
    assert_eq!(
        deliveries,
        receiver.deliveries(),
        "no delivery after the last"
    );
    assert_eq!(deliveries.len(), attempts);
    let common = gateway.get(key, &format!("/v1/tasks/{id}")).await.ok();
    for delivery in deliveries {
        assert_eq!(delivery.body, shown);
        assert_eq!(delivery.body, common.body);
        let head = &delivery.head;
        assert!(
            head.starts_with("post /told?token=t http/1.1\r\n"),
            "{head}"
        );
        let line = format!("\r\nidempotency-key: {id}\r\n");
        assert!(head.contains(&line), "{head}");
        assert!(
            head.contains("\r\ncontent-type: application/json"),
            "{head}"
        );
        assert!(!head.contains("authorization"), "{head}");
    }
    gateway.verify().await;
}

/// The gateway makes at most four attempts, and follows no redirect.
#[tokio::test]
async fn the_end_of_a_task_is_told_until_it_is_heard() {
    for (statuses, attempts) in [(&[204][..], 1), (&[500, 302, 200], 3), (&[500], 4)] {
        let gateway_and_key = allow_loopback(videos::builder()).funded().await;
        let (gateway, key) = &gateway_and_key;
        let receiver = Receiver::start(statuses).await;
        let body = with_callback(videos::video_body("x"), &receiver.url);
        let id = videos::create(gateway, key, &body).await;
        let shown = videos::wait_for_end(gateway, key, &id).await.body;
        assert_delivered(&gateway_and_key, &receiver, (&id, &shown), attempts).await;
    }
}

#[tokio::test]
async fn the_end_of_a_content_task_is_told_once() {
    let gateway_and_key = content_tasks::builder().funded().await;
    let (gateway, key) = &gateway_and_key;
    let receiver = Receiver::start(&[200]).await;
    let body = with_callback(content_tasks::video_body("a boat"), &receiver.url);
    let id = content_tasks::create(gateway, key, &body).await;
    let shown = content_tasks::wait_for_end(gateway, key, &id).await;
    assert_eq!(shown.json()["status"], "succeeded");
    assert_delivered(&gateway_and_key, &receiver, (&id, &shown.body), 1).await;
}

#[tokio::test]
async fn the_end_of_an_operation_is_told_once() {
    let gateway_and_key = allow_loopback(predict::builder()).funded().await;
    let (gateway, key) = &gateway_and_key;
    let receiver = Receiver::start(&[200]).await;
    let body = with_callback(predict::video_body("a boat"), &receiver.url);
    let id = predict::create(gateway, key, &body).await;
    let shown = predict::done(gateway, key, &id).await;
    assert!(shown.json()["response"].is_object());
    assert_delivered(&gateway_and_key, &receiver, (&id, &shown.body), 1).await;
}

#[tokio::test]
async fn the_end_of_an_interaction_is_told_once() {
    let gateway_and_key = allow_loopback(omni::builder()).funded().await;
    let (gateway, key) = &gateway_and_key;
    let receiver = Receiver::start(&[200]).await;
    let body = with_callback(omni::video_body("fog"), &receiver.url);
    let id = omni::create(gateway, key, &body).await;
    let shown = omni::wait_for_end(gateway, key, &id).await;
    assert_eq!(shown.json()["status"], "completed");
    assert_delivered(&gateway_and_key, &receiver, (&id, &shown.body), 1).await;
}

/// Failed, expired and cancelled tasks have callbacks too.
#[tokio::test]
async fn every_kind_of_end_is_told() {
    let gateway_and_key = content_tasks::builder().funded().await;
    let (gateway, key) = &gateway_and_key;
    for (words, status) in [
        ("[fail]", "failed"),
        ("[expire]", "expired"),
        ("[queue]", "cancelled"),
    ] {
        let receiver = Receiver::start(&[200]).await;
        let body = with_callback(content_tasks::video_body(words), &receiver.url);
        let id = content_tasks::create(gateway, key, &body).await;
        if status == "cancelled" {
            content_tasks::wait_for_state(gateway, key, &id, &["queued"]).await;
            content_task_lists::delete(gateway, key, &id).await.ok();
        }
        let shown = content_tasks::wait_for_end(gateway, key, &id).await;
        assert_eq!(shown.json()["status"], status);
        assert_delivered(&gateway_and_key, &receiver, (&id, &shown.body), 1).await;
    }
}

/// A3: the gateway never connects to a refused address, however the URL spells it.
#[tokio::test]
async fn callbacks_to_addresses_that_are_not_public_never_arrive() {
    let (gateway, key) = videos::builder().funded().await;
    let heard = Arc::new(Mutex::new(0));
    let mut ports = Vec::new();
    for address in ["127.0.0.1:0", "0.0.0.0:0"] {
        let listener = TcpListener::bind(address).await.unwrap();
        ports.push(listener.local_addr().unwrap().port());
        let heard = Arc::clone(&heard);
        tokio::spawn(async move {
            while listener.accept().await.is_ok() {
                *heard.lock().unwrap() += 1;
            }
        });
    }
    let (port, everywhere) = (ports[0], ports[1]);
    let urls = [
        format!("http://127.0.0.1:{port}/"),
        format!("http://localhost:{port}/"),
        format!("http://LOCALHOST.:{port}/"),
        format!("http://a.localhost:{port}/"),
        format!("http://0x7f.1:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("http://0177.0.0.1:{port}/"),
        format!("http://0.0.0.0:{everywhere}/"),
        format!("http://[::1]:{everywhere}/"),
        format!("http://[::]:{everywhere}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://[::127.0.0.1]:{port}/"),
        format!("http://[64:ff9b::7f00:1]:{port}/"),
        format!("http://printer:{port}/"),
        format!("http://db.internal:{port}/"),
        format!("http://tv.local:{port}/"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://10.0.0.1/".to_owned(),
        "http://[fd00:ec2::254]/".to_owned(),
        // The gateway's own listener.
        format!("http://{}/v1/balance", gateway.address()),
    ];
    for url in &urls {
        let body = with_callback(videos::video_body("x"), url);
        videos::create(&gateway, &key, &body).await;
    }
    eventually("the last attempts", async || {
        let rows = listed(&gateway, &[]).await;
        let given_up = rows
            .iter()
            .filter(|row| row["callback_outcome"] == "given_up");
        (given_up.count() == urls.len()).then_some(())
    })
    .await;
    assert_eq!(*heard.lock().unwrap(), 0);
    gateway.verify().await;
}

#[tokio::test]
async fn callbacks_that_wait_are_a_metric() {
    let (gateway, key) = GatewayBuilder::default()
        .entries(videos::ENTRIES)
        .setting("tasks", "poll_first_ms = 20")
        .setting("tasks", "callback_retry_ms = [600000, 600000, 600000]")
        .funded()
        .await;
    // Callbacks to this machine are not allowed, so the first attempt fails.
    let body = with_callback(videos::video_body("x"), "http://127.0.0.1:9/hook");
    videos::create(&gateway, &key, &body).await;
    eventually("the callback to wait", async || {
        let metrics = gateway.admin_get("/metrics").await.ok();
        let waits = metrics.text().contains("\ntollgate_callbacks_waiting 1\n");
        waits.then_some(())
    })
    .await;
}
