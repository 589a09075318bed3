//! The primary of a synchronous pair dies under load, and its standby takes over. The gateway reaches both with one
//! URL, over TLS and with a password.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::harness::{
    Cluster, DB_PASSWORD, Database, GatewayBuilder, Request, TestGateway, ask, eventually,
    expected_cost, run,
};

const CALLERS: usize = 8;

/// The answers that callers have received so far.
#[derive(Debug, Default)]
struct Seen {
    /// The charge of each call by its request id.
    answered: Mutex<BTreeMap<String, u64>>,
    refused: AtomicU64,
    is_over: AtomicBool,
}

impl Seen {
    fn count(&self) -> usize {
        self.answered.lock().len()
    }
}

/// A test gateway on two database servers, over TLS and with a password.
fn on(primary: &Cluster, standby: &Cluster) -> GatewayBuilder {
    let ca_file = format!("ca_file = \"{}\"", primary.ca_file().display());
    GatewayBuilder::default()
        .database(Database::on(&[primary, standby], primary))
        .file("db-password", DB_PASSWORD)
        .setting("store", "password = { file = \"db-password\" }")
        .setting("store", &ca_file)
}

#[tokio::test]
async fn what_was_answered_outlives_the_primary() {
    let Some(mut primary) = Cluster::start().await else {
        return;
    };
    let standby = primary.synchronous_standby().await;
    let (gateway, key) = on(&primary, &standby).funded().await;
    let gateway = Arc::new(gateway);
    let seen = Arc::new(Seen::default());
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (gateway, key, seen) = (Arc::clone(&gateway), key.clone(), Arc::clone(&seen));
        callers.spawn(async move {
            let request = Request::chat(&ask("reply with 5 words")).bearer(&key.secret);
            while !seen.is_over.load(Ordering::Relaxed) {
                let answer = gateway.send(&request).await;
                match answer.status() {
                    200 => {
                        let id = answer.header("x-request-id").unwrap().to_owned();
                        let price = expected_cost(&answer.json()["usage"]);
                        seen.answered.lock().insert(id, price);
                    }
                    503 => {
                        seen.refused.fetch_add(1, Ordering::Relaxed);
                        // Back off like a client.
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                    other => panic!("{other}: {}", answer.text()),
                }
            }
        });
    }
    eventually("load", async || (seen.count() > 100).then_some(())).await;
    let killed = Instant::now();
    primary.kill();
    let before = seen.count();
    standby.promote();
    let promoted = killed.elapsed();
    eventually("answers again", async || {
        (seen.count() > before + CALLERS).then_some(())
    })
    .await;
    let went_on = killed.elapsed();
    eventually("load", async || (seen.count() > before + 100).then_some(())).await;
    seen.is_over.store(true, Ordering::Relaxed);
    callers.join_all().await;
    eventually("the calls to be settled", async || {
        (gateway.frozen(&key).await == 0).then_some(())
    })
    .await;
    gateway.verify().await;

    let answered = seen.answered.lock().clone();
    let refused = seen.refused.load(Ordering::Relaxed);
    let reported: u64 = answered.values().sum();
    let usage = gateway.usage(&key).await;
    let price = answered.values().max().copied().unwrap_or(0);
    eprintln!(
        "{} answered, {refused} refused; promoted after {promoted:?}, calls went on after {went_on:?}; told {reported}, booked {usage}",
        answered.len(),
    );
    // Every answered call is booked. A call whose commit was in doubt is refused, but may be booked.
    assert!(
        usage >= reported && usage <= reported + refused * price,
        "{usage} of {reported}, {refused} refused"
    );
    // The journal is written after the answer.
    let journal = eventually("the journal to have every answered call", async || {
        let rows = answered_rows(&gateway).await;
        answered
            .keys()
            .all(|id| rows.contains_key(id))
            .then_some(rows)
    })
    .await;
    for id in answered.keys() {
        assert_eq!(journal.get(id), Some(&1), "{id} in the journal");
    }
}

/// The number of journal rows of each call that was answered with 200.
async fn answered_rows(gateway: &TestGateway) -> BTreeMap<String, u64> {
    let rows = gateway.cli(&["logs", "--limit", "100000", "--json"]).await;
    let mut counts = BTreeMap::new();
    for line in rows.stdout.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        if row["status"] == 200 {
            let id = row["request_id"].as_str().unwrap().to_owned();
            *counts.entry(id).or_default() += 1;
        }
    }
    counts
}

/// Without its standby, the primary still commits locally. Calls must not be answered after a local commit, because the
/// commit would be lost with the primary.
#[tokio::test]
async fn nothing_is_answered_that_the_standby_does_not_have() {
    let Some(mut primary) = Cluster::start().await else {
        return;
    };
    let mut standby = primary.synchronous_standby().await;
    let (gateway, key) = on(&primary, &standby).funded().await;
    let prompt = ask("reply with 5 words");
    let answer = gateway.chat(&key, &prompt).await.ok();
    let price = expected_cost(&answer.json()["usage"]);
    eventually("the call to be settled", async || {
        (gateway.frozen(&key).await == 0).then_some(())
    })
    .await;
    // A command that only reads can use the standby.
    let config = std::fs::read_to_string(gateway.config_file()).unwrap();
    let reading = config.replace("?sslmode", "?target_session_attrs=read-only&sslmode");
    std::fs::write(gateway.folder().join("reading.toml"), reading).unwrap();
    let arguments = ["--config", "reading.toml", "ledger", "verify"];
    let verified = run(&arguments, gateway.folder()).await;
    assert!(verified.status.success(), "{}", verified.stderr);

    standby.kill();
    let verified = run(&arguments, gateway.folder()).await;
    assert!(
        verified.stderr.contains("database is not read only"),
        "{}",
        verified.stderr
    );
    let calls: [_; 4] = std::array::from_fn(|_| gateway.chat(&key, &prompt));
    for answer in futures_util::future::join_all(calls).await {
        assert_eq!(answer.status(), 503, "{}", answer.text());
    }
    primary.kill();
    standby.resume().await;
    standby.promote();
    eventually("answers again", async || {
        (gateway.chat(&key, &prompt).await.status() == 200).then_some(())
    })
    .await;
    eventually("the calls to be settled", async || {
        (gateway.frozen(&key).await == 0).then_some(())
    })
    .await;
    assert_eq!(gateway.usage(&key).await, 2 * price);
    gateway.verify().await;
}
