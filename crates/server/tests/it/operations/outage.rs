//! Outages of the database under load.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinSet;

use crate::harness::{
    Answer, Channel, Cluster, DB_PASSWORD, Database, GatewayBuilder, Mode, Request, Running,
    TestGateway, ask, eventually, expected_cost, signal,
};
use crate::tasks::videos::{builder, create, video_body, wait_for_end};

const CALLERS: u64 = 8;

/// The answers that callers have received so far.
#[derive(Debug, Default)]
struct Seen {
    answered: AtomicU64,
    refused: AtomicU64,
    is_over: AtomicBool,
}

/// `TOLLGATE_OUTAGE_SECONDS=60` runs the long version, in which the outage outlasts a lease.
#[tokio::test]
async fn an_outage_refuses_calls_and_charges_none_of_them() {
    let Some(database) = Database::shared() else {
        eprintln!("not played: run it by scripts/with-postgres");
        return;
    };
    let seconds = std::env::var("TOLLGATE_OUTAGE_SECONDS").map_or(2, |it| it.parse().unwrap());
    let (database, proxy) = database.behind_a_proxy().await;
    let (gateway, key) = GatewayBuilder::default().database(database).funded().await;
    let gateway = Arc::new(gateway);
    let seen = Arc::new(Seen::default());
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (gateway, key, seen) = (Arc::clone(&gateway), key.clone(), Arc::clone(&seen));
        callers.spawn(async move {
            let request = Request::chat(&ask("reply with 5 words")).bearer(&key.secret);
            let mut price = 0;
            while !seen.is_over.load(Ordering::Relaxed) {
                let answer = gateway.send(&request).await;
                match answer.status() {
                    200 => {
                        price = expected_cost(&answer.json()["usage"]);
                        seen.answered.fetch_add(1, Ordering::Relaxed);
                    }
                    503 => {
                        seen.refused.fetch_add(1, Ordering::Relaxed);
                        // Back off like a client.
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                    other => panic!("{other}: {}", answer.text()),
                }
            }
            price
        });
    }
    let answered = || seen.answered.load(Ordering::Relaxed);
    eventually("load", async || (answered() > 40).then_some(())).await;
    for away in [Mode::Cut, Mode::BlackHole] {
        let refused = seen.refused.load(Ordering::Relaxed);
        proxy.set(away);
        // The outage lasts this long. There is no event to wait for.
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        eventually("a refusal", async || {
            (seen.refused.load(Ordering::Relaxed) > refused).then_some(())
        })
        .await;
        proxy.set(Mode::Pass);
        let before = answered();
        eventually("answers again", async || {
            (answered() > before + 40).then_some(())
        })
        .await;
    }
    seen.is_over.store(true, Ordering::Relaxed);
    let price = callers.join_all().await.into_iter().max().unwrap();
    eventually("the calls to be settled", async || {
        (gateway.frozen(&key).await == 0).then_some(())
    })
    .await;
    let (usage, expected) = (gateway.usage(&key).await, answered() * price);
    // In each of the two outages, every caller may have had one answer under way and one earlier call that was not
    // settled. If the lease ends meanwhile, those holds are closed at no charge.
    let unsettled = 2 * 2 * CALLERS * price;
    assert!(
        usage <= expected && expected <= usage + unsettled,
        "{usage} of {expected}"
    );
    gateway.verify().await;
}

/// Checks a refusal for a call that could not be decided: 503 with the advice to retry.
#[track_caller]
fn assert_undecided(answer: &Answer) {
    assert_eq!(answer.failure(), (503, "service_unavailable".to_owned()));
    assert!(answer.header("retry-after").is_some(), "{:?}", answer.head);
}

async fn is_ready(gateway: &TestGateway) -> bool {
    gateway.admin_get("/readyz").await.status() == 200
}

/// Tests a key that the node has never seen, and one that was authenticated but has not been charged yet.
#[tokio::test]
async fn a_key_that_a_node_has_not_met_is_not_refused_while_the_database_is_away() {
    let Some(database) = Database::shared() else {
        eprintln!("not played: run it by scripts/with-postgres");
        return;
    };
    let (database, proxy) = database.behind_a_proxy().await;
    let (gateway, recognised) = GatewayBuilder::default().database(database).funded().await;
    let unmet = gateway.key("w", &[]).await;
    gateway.get(&recognised, "/v1/models").await.ok();
    proxy.set(Mode::Cut);
    for key in [&recognised, &unmet] {
        assert_undecided(&gateway.chat(key, &ask("hello")).await);
        assert_undecided(&gateway.get(key, "/v1/balance").await);
    }
    proxy.set(Mode::Pass);
    for key in [&recognised, &unmet] {
        eventually("an answer", async || {
            (gateway.chat(key, &ask("hello")).await.status() == 200).then_some(())
        })
        .await;
    }
    gateway.verify().await;
}

/// The gateway gets no connections to the database. It does not refuse a known key as invalid, and it reports that it
/// is not ready.
#[tokio::test]
async fn a_node_that_gets_no_connection_is_not_ready_and_refuses_no_key() {
    let Some(database) = Database::shared() else {
        eprintln!("not played: run it by scripts/with-postgres");
        return;
    };
    let (database, role) = database.with_own_role();
    let (gateway, key) = GatewayBuilder::default().database(database).funded().await;
    gateway.get(&key, "/v1/models").await.ok();
    eventually("readiness", async || is_ready(&gateway).await.then_some(())).await;
    role.alter("CONNECTION LIMIT 0");
    role.end_sessions();
    assert_undecided(&gateway.chat(&key, &ask("hello")).await);
    eventually("that the node is not ready", async || {
        (!is_ready(&gateway).await).then_some(())
    })
    .await;
    let is_cause = |line: &str| line.contains("too many connections (max_connections");
    gateway.logged("the cause", is_cause).await;
    role.alter("CONNECTION LIMIT -1");
    // A node that is not ready gets no calls, so it must notice the recovery by itself.
    eventually("readiness", async || is_ready(&gateway).await.then_some(())).await;
    gateway.chat(&key, &ask("hello")).await.ok();
    gateway.verify().await;
}

fn on(cluster: &Cluster) -> GatewayBuilder {
    builder()
        .database(Database::on(&[cluster], cluster))
        .file("db-password", DB_PASSWORD)
        .setting("store", "password = { file = \"db-password\" }")
        .setting(
            "store",
            &format!("ca_file = \"{}\"", cluster.ca_file().display()),
        )
}

/// During a restart of the database, every answer is 200 or 503, even for keys that have not made a call yet. A command
/// that follows the journal misses no row and repeats no row. A command that follows tasks shows later tasks too. The
/// next start of the gateway waits for the database.
#[tokio::test]
async fn a_restart_of_the_database_is_outlived() {
    let Some(mut cluster) = Cluster::start().await else {
        return;
    };
    let (mut gateway, key) = on(&cluster).funded().await;
    let mut keys = vec![key];
    for _ in 0..20 {
        keys.push(gateway.key("w", &[]).await);
    }
    let follow = |words: &[&str]| {
        let mut arguments = vec!["--config", "tollgate.toml", "--json"];
        arguments.extend_from_slice(words);
        Running::start(&arguments, gateway.folder(), Channel::Stdout)
    };
    let mut logs = follow(&["logs", "--follow"]);
    let mut tasks = follow(&["tasks", "follow"]);
    let mut request_ids = vec![answered(&gateway, &keys[0]).await];
    logs.line("a call", |line| line.contains(&request_ids[0]))
        .await;
    let task = create(&gateway, &keys[0], &video_body("a boat")).await;
    tasks.line("a task", |line| line.contains(&task)).await;
    wait_for_end(&gateway, &keys[0], &task).await;
    for key in &keys {
        // The node authenticates the key. This alone does not load the key into the ledger.
        gateway.get(key, "/v1/models").await.ok();
    }
    cluster.stop();
    for key in &keys[1..10] {
        assert_undecided(&gateway.chat(key, &ask("hello")).await);
    }
    eventually("that the node is not ready", async || {
        (!is_ready(&gateway).await).then_some(())
    })
    .await;
    cluster.resume().await;
    for key in &keys {
        request_ids.push(answered(&gateway, key).await);
    }
    for id in &request_ids {
        logs.line("a call", |line| line.contains(id)).await;
    }
    let lines = logs.lines();
    for id in &request_ids {
        let times = lines.iter().filter(|line| line.contains(id)).count();
        assert_eq!(times, 1, "{id}");
    }
    let task = create(&gateway, &keys[0], &video_body("a boat")).await;
    tasks.line("a task", |line| line.contains(&task)).await;
    wait_for_end(&gateway, &keys[0], &task).await;
    signal("TERM", tasks.pid());
    assert!(
        tasks.ended().await.code().is_none(),
        "it followed until now"
    );
    gateway.verify().await;

    // Start the gateway while the database is down.
    cluster.stop();
    gateway.kill();
    let mut starting = Running::start(
        &["serve", "--config", "tollgate.toml"],
        gateway.folder(),
        Channel::Stderr,
    );
    let waits = starting.line("a word", |line| line.contains("waiting for the database"));
    let waits: Value = serde_json::from_str(&waits.await).unwrap();
    let reason = waits["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("refused"), "{waits}");
    signal("TERM", starting.pid());
    assert!(starting.ended().await.success(), "{:?}", starting.lines());
    let mut starting = Running::start(
        &["serve", "--config", "tollgate.toml"],
        gateway.folder(),
        Channel::Stderr,
    );
    starting
        .line("a word", |line| line.contains("waiting for the database"))
        .await;
    cluster.resume().await;
    starting
        .line("its service", |line| line.contains("\"serving\""))
        .await;
    drop(starting);

    // Waiting cannot fix a wrong password, so the start fails immediately.
    std::fs::write(gateway.folder().join("db-password"), "another").unwrap();
    let refused = gateway.cli(&["serve"]).await;
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("the password is wrong"),
        "{}",
        refused.stderr
    );
}

/// Repeats a call until it is answered, and returns its request id. Every earlier answer must be 503.
async fn answered(gateway: &TestGateway, key: &crate::harness::Key) -> String {
    eventually("an answer", async || {
        let answer = gateway.chat(key, &ask("hello")).await;
        if answer.status() != 200 {
            assert_undecided(&answer);
            return None;
        }
        Some(answer.header("x-request-id").unwrap().to_owned())
    })
    .await
}
