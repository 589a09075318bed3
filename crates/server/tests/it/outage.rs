//! The database goes away under load and comes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;

use crate::harness::{Database, Mode, Plot, Request, ask, by_hand, eventually};

const CALLERS: u64 = 8;

/// What callers have seen so far.
#[derive(Debug, Default)]
struct Seen {
    answered: AtomicU64,
    refused: AtomicU64,
    is_over: AtomicBool,
}

/// `TOLLGATE_OUTAGE_SECONDS=60` is the long proof: longer than a lease.
#[tokio::test]
async fn an_outage_refuses_calls_and_charges_none_of_them() {
    let Some(database) = Database::shared() else {
        eprintln!("not played: run it by scripts/with-postgres");
        return;
    };
    let seconds = std::env::var("TOLLGATE_OUTAGE_SECONDS").map_or(2, |it| it.parse().unwrap());
    let (database, cut) = database.behind_a_proxy().await;
    let (stage, key) = Plot::default().database(database).funded().await;
    let stage = Arc::new(stage);
    let seen = Arc::new(Seen::default());
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (stage, key, seen) = (Arc::clone(&stage), key.clone(), Arc::clone(&seen));
        callers.spawn(async move {
            let request = Request::chat(&ask("reply with 5 words")).bearer(&key.secret);
            let mut price = 0;
            while !seen.is_over.load(Ordering::Relaxed) {
                let answer = stage.send(&request).await;
                match answer.status() {
                    200 => {
                        price = by_hand(&answer.json()["usage"]);
                        seen.answered.fetch_add(1, Ordering::Relaxed);
                    }
                    503 => {
                        seen.refused.fetch_add(1, Ordering::Relaxed);
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
        cut.set(away);
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        eventually("a refusal", async || {
            (seen.refused.load(Ordering::Relaxed) > refused).then_some(())
        })
        .await;
        cut.set(Mode::Pass);
        let before = answered();
        eventually("answers again", async || {
            (answered() > before + 40).then_some(())
        })
        .await;
    }
    seen.is_over.store(true, Ordering::Relaxed);
    let price = callers.join_all().await.into_iter().max().unwrap();
    eventually("the calls to be settled", async || {
        (stage.frozen(&key).await == 0).then_some(())
    })
    .await;
    let (usage, told) = (stage.usage(&key).await, answered() * price);
    // Each caller may have had one answer on its way and one before it, not settled yet, when the
    // database went, twice. A lease that ends meanwhile gives those back.
    let unsettled = 2 * 2 * CALLERS * price;
    assert!(
        usage <= told && told <= usage + unsettled,
        "{usage} of {told}"
    );
    stage.verify().await;
}
