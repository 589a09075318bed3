//! Shutdown by a signal: open work is finished, and the exit is clean (R3).

use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{
    BodyEnd, Connection, GatewayBuilder, TestGateway, ask, eventually, expected_cost, signal, with,
};

#[tokio::test]
async fn open_streams_finish_before_the_end() {
    let (mut gateway, key) = TestGateway::funded().await;
    gateway
        .sim
        .queue_faults("sim-chat", "chunks=40+chunk-delay=20ms", 1)
        .unwrap();
    let body = with(
        ask("go"),
        &json!({ "stream_options": { "include_usage": true } }),
    );
    let mut stream = gateway.stream(&key, &body).await;
    stream.next().await.unwrap();
    signal("TERM", gateway.pid());
    let (events, ended) = stream.rest().await;
    assert_eq!(ended, BodyEnd::Complete);
    assert!(events.last().unwrap().is_done());
    let usage = events[events.len() - 2].json()["usage"].clone();
    assert!(gateway.process().ended().await.success());
    gateway.verify().await;
    gateway.restart().await;
    assert_eq!(gateway.usage(&key).await, expected_cost(&usage));
    assert_eq!(gateway.frozen(&key).await, 0);
}

/// For load balancers, the node first reports that it is not ready, and keeps serving for a while.
#[tokio::test]
async fn a_stopping_node_says_so_before_it_stops_listening() {
    let (mut gateway, key) = GatewayBuilder::default()
        .setting("timeouts", "shutdown_notice_ms = 600000")
        .funded()
        .await;
    gateway.admin_get("/readyz").await.ok();
    signal("TERM", gateway.pid());
    let answer = eventually("not ready", async || {
        let answer = gateway.admin_get("/readyz").await;
        (answer.status() == 503).then_some(answer)
    })
    .await;
    assert_eq!(answer.json()["draining"], true);
    gateway.admin_get("/healthz").await.ok();
    gateway.chat(&key, &ask("hello")).await.ok();
    signal("TERM", gateway.pid());
    assert!(gateway.process().ended().await.success());
}

#[tokio::test]
async fn a_notice_ends_at_its_time() {
    let mut gateway = GatewayBuilder::default()
        .setting("timeouts", "shutdown_notice_ms = 100")
        .start()
        .await;
    signal("TERM", gateway.pid());
    let stopped = |line: &str| line.contains("\"stopped\"");
    gateway.process().line("a clean end", stopped).await;
    assert!(gateway.process().ended().await.success());
}

/// Calls that are open when the drain ends get the error of S2 and are settled by B2.
#[tokio::test]
async fn a_stream_that_outlasts_the_drain_ends_with_an_error() {
    let (mut gateway, key) = GatewayBuilder::default()
        .setting("timeouts", "shutdown_drain_ms = 300")
        .funded()
        .await;
    gateway
        .sim
        .queue_faults("sim-chat", "hang=content", 1)
        .unwrap();
    let mut stream = gateway.stream(&key, &ask("reply with 60 words")).await;
    stream.next().await.unwrap();
    signal("TERM", gateway.pid());
    let (events, _) = stream.rest().await;
    let last = events.last().unwrap().json();
    assert_eq!(last["error"]["type"], "server_error", "{last}");
    assert!(gateway.process().ended().await.success());
    gateway.restart().await;
    assert_eq!(gateway.frozen(&key).await, 0);
    assert!(
        gateway.usage(&key).await > 0,
        "what was delivered is charged"
    );
    gateway.verify().await;
}

#[tokio::test]
async fn idle_connections_do_not_hold_the_end_up() {
    let (mut gateway, key) = TestGateway::funded().await;
    let mut idle = Vec::new();
    for _ in 0..5 {
        let mut connection = Connection::open(gateway.address()).await;
        let request = crate::harness::Request::get("/v1/models").bearer(&key.secret);
        connection.send(&request).await;
        connection.answer().await.ok();
        idle.push(connection);
    }
    let silent = Connection::open(gateway.address()).await;
    let start = Instant::now();
    signal("TERM", gateway.pid());
    assert!(gateway.process().ended().await.success());
    assert!(
        start.elapsed() < Duration::from_secs(3),
        "{:?}",
        start.elapsed()
    );
    drop((idle, silent));
}

/// A second signal is as safe as `kill -9`.
#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    let (mut gateway, key) = GatewayBuilder::default()
        .setting("timeouts", "shutdown_drain_ms = 60000")
        .funded()
        .await;
    gateway
        .sim
        .queue_faults("sim-chat", "hang=content", 1)
        .unwrap();
    let mut stream = gateway.stream(&key, &ask("reply with 60 words")).await;
    stream.next().await.unwrap();
    signal("TERM", gateway.pid());
    let pid = gateway.pid();
    let stopping = |line: &str| line.contains("stopping");
    gateway.process().line("the first signal", stopping).await;
    let start = Instant::now();
    signal("INT", pid);
    gateway.process().ended().await;
    assert!(start.elapsed() < Duration::from_secs(30));
    gateway.restart().await;
    assert_eq!(gateway.frozen(&key).await, 0);
    gateway.verify().await;
}

#[tokio::test]
async fn open_buffered_calls_finish_before_the_end() {
    let (mut gateway, key) = TestGateway::funded().await;
    gateway
        .sim
        .queue_faults("sim-chat", "delay=500ms", 1)
        .unwrap();
    let pid = gateway.pid();
    let stop = async {
        eventually("the upstream call", async || {
            (gateway.upstream_calls() == 1).then_some(())
        })
        .await;
        signal("TERM", pid);
    };
    let body = ask("say exactly: in time");
    let (answer, ()) = tokio::join!(gateway.chat(&key, &body), stop);
    assert_eq!(
        answer.ok().json()["choices"][0]["message"]["content"],
        "in time"
    );
    assert!(gateway.process().ended().await.success());
    gateway.verify().await;
}
