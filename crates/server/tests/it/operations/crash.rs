//! The ledger survives `kill -9`, repeatedly and under load.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;
use tokio::task::JoinSet;

use crate::harness::{Connection, Request, TestGateway, ask, eventually, micro, run, with};

/// Rounds of load and `kill -9`. `TOLLGATE_KILLS=200` runs the long version.
const ROUNDS: usize = 20;
const CALLERS: usize = 8;

/// Native and converted calls, streamed and not.
fn mixed_requests() -> [Request; 5] {
    let plain = ask("reply with 20 words");
    let streamed = with(plain.clone(), &json!({ "stream": true }));
    let message = with(plain.clone(), &json!({ "max_tokens": 100 }));
    let message_streamed = with(message.clone(), &json!({ "stream": true }));
    let response = json!({ "model": plain["model"], "input": "reply with 20 words" });
    [
        Request::chat(&plain),
        Request::chat(&streamed),
        Request::post("/v1/messages").json(&message),
        Request::post("/v1/messages").json(&message_streamed),
        Request::post("/v1/responses").json(&response),
    ]
}

/// Sends calls until the connection breaks, and counts complete answers.
async fn call_on(
    address: std::net::SocketAddr,
    secret: String,
    which: usize,
    whole: Arc<AtomicU64>,
) {
    let mut connection = Connection::open(address).await;
    let mixed = mixed_requests();
    for number in which.. {
        let request = mixed[number % mixed.len()].clone().bearer(&secret);
        connection.send(&request).await;
        match connection.try_answer().await {
            Some(answer)
                if answer.status() == 200 && answer.ended == crate::harness::BodyEnd::Complete =>
            {
                whole.fetch_add(1, Ordering::Relaxed);
            }
            Some(answer) if answer.status() == 200 => return,
            // The gateway is too busy and has not decided about the call.
            Some(answer) if answer.status() == 503 => {}
            Some(answer) => panic!("{}", answer.text()),
            None => return,
        }
    }
}

/// B5: killed under load, twenty times in a row. Nothing stays frozen, the ledger verifies, and the spending that a
/// caller has seen is not lost.
#[tokio::test]
async fn killed_under_load_twenty_times_in_a_row() {
    let (mut gateway, key) = TestGateway::funded().await;
    let rounds = std::env::var("TOLLGATE_KILLS").map_or(ROUNDS, |kills| kills.parse().unwrap());
    let mut reported = 0;
    for round in 0..rounds {
        let whole = Arc::new(AtomicU64::new(0));
        let mut callers = JoinSet::new();
        for which in 0..CALLERS {
            let (address, secret) = (gateway.address(), key.secret.clone());
            callers.spawn(call_on(address, secret, which, Arc::clone(&whole)));
        }
        let goal = 10 + round as u64 % 40;
        eventually("some whole answers", async || {
            (whole.load(Ordering::Relaxed) >= goal).then_some(())
        })
        .await;
        reported = gateway.usage(&key).await.max(reported);
        gateway.kill();
        while let Some(caller) = callers.join_next().await {
            caller.unwrap();
        }
        gateway.verify().await;
        gateway.restart().await;
        let balance = gateway.balance(&key).await;
        assert_eq!(micro(&balance["wallet"], "frozen"), 0, "round {round}");
        let usage = micro(&balance["key"], "usage");
        assert!(
            usage >= reported,
            "round {round}: {usage} after {reported} was told"
        );
        assert_eq!(micro(&balance["wallet"], "balance"), 100_000_000 - usage);
        gateway.verify().await;
    }
    gateway.chat(&key, &ask("hello")).await.ok();
}

/// The holds of a dead node are closed as abandoned, at no charge.
#[tokio::test]
async fn a_call_that_dies_with_its_node_is_abandoned() {
    let (mut gateway, key) = TestGateway::funded().await;
    gateway
        .sim
        .queue_faults("sim-chat", "hang=content", 3)
        .unwrap();
    let mut streams = Vec::new();
    for _ in 0..3 {
        let mut stream = gateway.stream(&key, &ask("reply with 60 words")).await;
        stream.next().await.unwrap();
        streams.push(stream);
    }
    assert!(gateway.frozen(&key).await > 0);
    gateway.kill();
    gateway.restart().await;
    assert_eq!(gateway.frozen(&key).await, 0);
    assert_eq!(gateway.usage(&key).await, 0);
    let serving = |line: &str| line.contains("\"serving\"");
    let line = gateway.logged("that it serves", serving).await;
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line["holds_abandoned"], 3);
    gateway.verify().await;
}

/// R1: only one server may use a `SQLite` database.
#[tokio::test]
async fn a_second_server_on_the_same_data_is_refused() {
    let (gateway, key) = TestGateway::funded().await;
    if gateway.database().is_shared() {
        return; // `PostgreSQL` allows any number of nodes: see `nodes.rs`.
    }
    let second = run(&["serve", "--config", "tollgate.toml"], gateway.folder()).await;
    assert_eq!(second.status.code(), Some(1));
    assert!(
        second.stderr.contains("another server is running"),
        "{}",
        second.stderr
    );
    gateway.chat(&key, &ask("hello")).await.ok();
    gateway.verify().await;
}

/// R10: the error names the damaged file, and the file is not changed.
#[tokio::test]
async fn a_corrupt_database_is_refused_and_not_touched() {
    let (mut gateway, _) = TestGateway::funded().await;
    if gateway.database().is_shared() {
        return; // `PostgreSQL` has no file that the test could damage.
    }
    gateway.kill();
    let file = gateway.folder().join("data/tollgate.db");
    for companion in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(
            gateway
                .folder()
                .join(format!("data/tollgate.db{companion}")),
        );
    }
    std::fs::write(
        &file,
        b"this is not a database, and never was one".repeat(500),
    )
    .unwrap();
    let before = std::fs::read(&file).unwrap();
    let start = run(&["serve", "--config", "tollgate.toml"], gateway.folder()).await;
    assert_eq!(start.status.code(), Some(1));
    assert!(start.stderr.contains("tollgate.db"), "{}", start.stderr);
    assert_eq!(std::fs::read(&file).unwrap(), before);
}
