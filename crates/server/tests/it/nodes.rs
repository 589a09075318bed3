//! Several nodes on one database: one truth for wallets and limits, and no node that matters.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::harness::{
    Connection, Database, Key, Plot, Request, Stage, ask, eventually, micro, signal,
};

/// A stage with three nodes and short leases; nothing where there is no server for them.
async fn three_nodes() -> Option<(Stage, Vec<SocketAddr>)> {
    let Some(database) = Database::shared() else {
        eprintln!("not played: run it by scripts/with-postgres");
        return None;
    };
    let plot = Plot::default()
        .database(database)
        .setting("store", "lease_ms = 2000");
    let mut stage = plot.open().await;
    let mut nodes = vec![stage.address()];
    for _ in 0..2 {
        nodes.push(stage.another_node().await);
    }
    Some((stage, nodes))
}

async fn call(node: SocketAddr, key: &Key, prompt: &str) -> u16 {
    let mut connection = Connection::open(node).await;
    let request = Request::chat(&ask(prompt)).bearer(&key.secret);
    connection.send(&request).await;
    connection.answer().await.status()
}

/// Calls at once, spread over the nodes; answers how many succeeded.
async fn race(nodes: &[SocketAddr], key: &Key, calls: usize) -> usize {
    let mut asked = JoinSet::new();
    for number in 0..calls {
        let (node, key) = (nodes[number % nodes.len()], key.clone());
        asked.spawn(async move { call(node, &key, "reply with 5 words").await });
    }
    let mut admitted = 0;
    while let Some(status) = asked.join_next().await {
        match status.unwrap() {
            200 => admitted += 1,
            402 | 429 => {}
            other => panic!("{other}"),
        }
    }
    admitted
}

#[tokio::test]
async fn limits_hold_over_three_nodes() {
    let Some((stage, nodes)) = three_nodes().await else {
        return;
    };
    stage.wallet("w", &["--balance", "100"]).await;
    let key = stage.key("w", &["--rpm", "5"]).await;
    assert_eq!(race(&nodes, &key, 60).await, 5);
    // A node settles behind its answers: what it has not told the database yet is still frozen.
    eventually("the calls to be settled", async || {
        (stage.frozen(&key).await == 0).then_some(())
    })
    .await;
    // What each node was told is charged once, and every node shows the same.
    let spent = stage.usage(&key).await;
    assert!(spent > 0);
    for node in &nodes {
        let mut connection = Connection::open(*node).await;
        connection
            .send(&Request::get("/v1/balance").bearer(&key.secret))
            .await;
        let balance = connection.answer().await.ok().json();
        assert_eq!(micro(&balance["key"], "usage"), spent);
    }
    stage.verify().await;
}

#[tokio::test]
async fn a_dead_nodes_slots_come_back_one_lease_later() {
    let Some((mut stage, nodes)) = three_nodes().await else {
        return;
    };
    stage.wallet("w", &["--balance", "100"]).await;
    let key = stage.key("w", &["--concurrency", "1"]).await;
    stage
        .sim
        .queue_faults("sim-chat", "hang=content", 1)
        .unwrap();
    let hanging = tokio::spawn({
        let (node, key) = (nodes[2], key.clone());
        async move {
            let mut connection = Connection::open(node).await;
            let request = Request::chat(&ask("reply with 60 words")).bearer(&key.secret);
            connection.send(&request).await;
            connection.try_answer().await.is_none()
        }
    });
    eventually("the slot to be taken", async || {
        (stage.frozen(&key).await > 0).then_some(())
    })
    .await;
    assert_eq!(call(nodes[0], &key, "hello").await, 429);
    stage.kill_last_node();
    assert!(hanging.await.unwrap(), "a killed node does not answer");
    eventually("the slot", async || {
        (call(nodes[0], &key, "hello").await == 200).then_some(())
    })
    .await;
    assert_eq!(stage.frozen(&key).await, 0);
    stage.verify().await;
}

#[tokio::test]
async fn a_node_stopped_past_its_lease_serves_again_and_charges_nothing_late() {
    let Some((stage, nodes)) = three_nodes().await else {
        return;
    };
    stage.wallet("w", &["--balance", "100"]).await;
    let key = stage.key("w", &[]).await;
    stage
        .sim
        .queue_faults("sim-chat", "delay=1500ms", 1)
        .unwrap();
    let late = tokio::spawn({
        let (node, key) = (nodes[2], key.clone());
        async move { call(node, &key, "reply with 9 words").await }
    });
    eventually("the call to be admitted", async || {
        (stage.frozen(&key).await > 0 || stage.usage(&key).await > 0).then_some(())
    })
    .await;
    signal("STOP", stage.last_node().pid());
    eventually("its hold to be closed", async || {
        (stage.frozen(&key).await == 0).then_some(())
    })
    .await;
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    let spent = stage.usage(&key).await;
    signal("CONT", stage.last_node().pid());
    // The call may still be answered; it is the house that pays.
    let _ = late.await;
    assert_eq!(stage.usage(&key).await, spent);
    eventually("its return", async || {
        (call(nodes[2], &key, "hello").await == 200).then_some(())
    })
    .await;
    stage.verify().await;
}
