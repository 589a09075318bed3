//! Several nodes on one database: wallets and limits are shared, and any node may fail.

use std::net::SocketAddr;

use tokio::task::JoinSet;

use crate::harness::{
    Connection, Database, GatewayBuilder, Key, Request, TestGateway, ask, eventually, micro, signal,
};

/// A test gateway with three nodes and short leases, or `None` if there is no database server.
async fn three_nodes() -> Option<(TestGateway, Vec<SocketAddr>)> {
    let Some(database) = Database::shared() else {
        eprintln!("not played: run it by scripts/with-postgres");
        return None;
    };
    let builder = GatewayBuilder::default()
        .database(database)
        .setting("store", "lease_ms = 2000")
        .entries(
            r#"
            [[model]]
            id = "maker/voice"
            kind = "audio"
            routes = [{ channel = "main", model = "sim-voice" }]
            price = { tts_characters = "15" }
            "#,
        );
    let mut gateway = builder.start().await;
    let mut nodes = vec![gateway.address()];
    for _ in 0..2 {
        nodes.push(gateway.another_node().await);
    }
    Some((gateway, nodes))
}

async fn call(node: SocketAddr, key: &Key, prompt: &str) -> u16 {
    let mut connection = Connection::open(node).await;
    let request = Request::chat(&ask(prompt)).bearer(&key.secret);
    connection.send(&request).await;
    connection.answer().await.status()
}

/// Sends calls at once, spread over the nodes, and returns how many succeeded.
async fn count_admitted(nodes: &[SocketAddr], key: &Key, calls: usize) -> usize {
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
    let Some((gateway, nodes)) = three_nodes().await else {
        return;
    };
    gateway.wallet("w", &["--balance", "100"]).await;
    let key = gateway.key("w", &["--rpm", "5"]).await;
    assert_eq!(count_admitted(&nodes, &key, 60).await, 5);
    // A node settles after its answers, so credits stay frozen until the database has the settlement.
    eventually("the calls to be settled", async || {
        (gateway.frozen(&key).await == 0).then_some(())
    })
    .await;
    // Every node shows the same usage.
    let spent = gateway.usage(&key).await;
    assert!(spent > 0);
    for node in &nodes {
        let mut connection = Connection::open(*node).await;
        connection
            .send(&Request::get("/v1/balance").bearer(&key.secret))
            .await;
        let balance = connection.answer().await.ok().json();
        assert_eq!(micro(&balance["key"], "usage"), spent);
    }
    gateway.verify().await;
}

/// Sends calls at once, spread over the nodes. The upstream hangs, so admitted calls stay open: exactly `admitted`
/// calls are admitted, and all others are refused.
async fn assert_admitted(gateway: &TestGateway, nodes: &[SocketAddr], key: &Key, admitted: u32) {
    const REFUSED: usize = 27;
    let prompt = "reply with 60 words";
    gateway
        .sim
        .queue_faults("sim-chat", "hang=content", admitted)
        .unwrap();
    let before = gateway.sim.calls().len();
    let mut asked = JoinSet::new();
    for number in 0..REFUSED + admitted as usize {
        let (node, key) = (nodes[number % nodes.len()], key.clone());
        asked.spawn(async move { call(node, &key, prompt).await });
    }
    for _ in 0..REFUSED {
        assert_eq!(asked.join_next().await.unwrap().unwrap(), 429);
    }
    eventually("the admitted calls upstream", async || {
        (gateway.sim.calls().len() == before + admitted as usize).then_some(())
    })
    .await;
    assert!(asked.try_join_next().is_none(), "the admitted ones hang");
    asked.shutdown().await;
    eventually("their callers' leaving to be noticed", async || {
        (gateway.frozen(key).await == 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn concurrency_and_tokens_are_counted_over_three_nodes() {
    let Some((gateway, nodes)) = three_nodes().await else {
        return;
    };
    gateway.wallet("w", &["--balance", "100"]).await;
    let key = gateway.key("w", &["--concurrency", "3"]).await;
    assert_admitted(&gateway, &nodes, &key, 3).await;

    let key = gateway.key("w", &["--tpm", "1000000"]).await;
    let prompt = ask("reply with 60 words");
    let answer = gateway.chat(&key, &prompt).await.ok();
    let left = answer.header("x-ratelimit-remaining-tokens").unwrap();
    let reserved = 1_000_000 - left.parse::<u32>().unwrap();
    // The tokens that become available during the race are fewer than one call needs.
    let key = gateway
        .key("w", &["--tpm", &(2 * reserved + reserved / 10).to_string()])
        .await;
    assert_admitted(&gateway, &nodes, &key, 2).await;
    gateway.verify().await;
}

/// 20 characters at 15 credits per million. The hold equals the charge.
const SPEECH_COST: usize = 300;

async fn speak(connection: &mut Connection, key: &Key) -> u16 {
    let body = serde_json::json!({
        "model": "maker/voice",
        "text": "twenty characters ok",
        "language": "en",
        "output_format": {"codec": "mulaw", "sample_rate": 8000},
    });
    let request = Request::post("/v1/tts").json(&body).bearer(&key.secret);
    connection.send(&request).await;
    connection.answer().await.status()
}

/// `TOLLGATE_RACE_CALLS=10000` runs the long version.
#[tokio::test]
async fn nodes_that_race_for_a_wallet_admit_exactly_what_it_can_pay() {
    const CALLERS: usize = 30;
    let Some((gateway, nodes)) = three_nodes().await else {
        return;
    };
    let calls = std::env::var("TOLLGATE_RACE_CALLS").map_or(300, |count| count.parse().unwrap());
    let payable: usize = calls / 3;
    let micro = payable * SPEECH_COST;
    let balance = format!("{}.{:06}", micro / 1_000_000, micro % 1_000_000);
    gateway.wallet("w", &["--balance", &balance]).await;
    let key = gateway.key("w", &[]).await;
    let mut callers = JoinSet::new();
    for number in 0..CALLERS {
        let (node, key) = (nodes[number % nodes.len()], key.clone());
        callers.spawn(async move {
            let mut connection = Connection::open(node).await;
            let (mut admitted, mut asked) = (0, 0);
            while asked < calls / CALLERS {
                match speak(&mut connection, &key).await {
                    200 => admitted += 1,
                    402 => {}
                    // Too many calls waited for the wallet's row, so the gateway has not decided about this call.
                    503 => continue,
                    other => panic!("{other}"),
                }
                asked += 1;
            }
            admitted
        });
    }
    let admitted: usize = callers.join_all().await.into_iter().sum();
    assert_eq!(admitted, payable);
    eventually("the calls to be settled", async || {
        (gateway.frozen(&key).await == 0).then_some(())
    })
    .await;
    assert_eq!(gateway.usage(&key).await, micro as u64);
    gateway.verify().await;
}

#[tokio::test]
async fn a_dead_nodes_slots_come_back_one_lease_later() {
    let Some((mut gateway, nodes)) = three_nodes().await else {
        return;
    };
    gateway.wallet("w", &["--balance", "100"]).await;
    let key = gateway.key("w", &["--concurrency", "1"]).await;
    gateway
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
        (gateway.frozen(&key).await > 0).then_some(())
    })
    .await;
    assert_eq!(call(nodes[0], &key, "hello").await, 429);
    gateway.kill_last_node();
    assert!(hanging.await.unwrap(), "a killed node does not answer");
    eventually("the slot", async || {
        (call(nodes[0], &key, "hello").await == 200).then_some(())
    })
    .await;
    assert_eq!(gateway.frozen(&key).await, 0);
    gateway.verify().await;
}

#[tokio::test]
async fn a_node_stopped_past_its_lease_serves_again_and_charges_nothing_late() {
    let Some((gateway, nodes)) = three_nodes().await else {
        return;
    };
    gateway.wallet("w", &["--balance", "100"]).await;
    let key = gateway.key("w", &[]).await;
    gateway
        .sim
        .queue_faults("sim-chat", "delay=1500ms", 1)
        .unwrap();
    let late = tokio::spawn({
        let (node, key) = (nodes[2], key.clone());
        async move { call(node, &key, "reply with 9 words").await }
    });
    eventually("the call to be admitted", async || {
        (gateway.frozen(&key).await > 0 || gateway.usage(&key).await > 0).then_some(())
    })
    .await;
    signal("STOP", gateway.last_node().pid());
    eventually("its hold to be closed", async || {
        (gateway.frozen(&key).await == 0).then_some(())
    })
    .await;
    // The upstream now has an answer for the stopped node.
    eventually("the upstream's answer", async || {
        let calls = gateway.sim.calls_of("sim-chat");
        calls
            .iter()
            .all(|call| call.took_ms.is_some())
            .then_some(())
    })
    .await;
    let spent = gateway.usage(&key).await;
    signal("CONT", gateway.last_node().pid());
    // The call may still be answered, but its hold is closed, so the operator bears the cost.
    let _ = late.await;
    assert_eq!(gateway.usage(&key).await, spent);
    eventually("its return", async || {
        (call(nodes[2], &key, "hello").await == 200).then_some(())
    })
    .await;
    gateway.verify().await;
}
