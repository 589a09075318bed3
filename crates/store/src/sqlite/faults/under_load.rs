//! Tests faults under load: calls arrive faster than batches are written, and each batch is written while the next one
//! is decided.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use ledger::Micro;
use rusqlite::Connection;

use super::rig::*;
use crate::backend::Backend;
use crate::sqlite::backend::Sqlite;
use crate::{IfLost, NotDurable, Store};

const CHARGE: u32 = 10;
const FUNDS: i64 = 10_000_000;

/// The numbers of calls that were confirmed and that were lost.
#[derive(Debug, Default, Clone, Copy)]
struct Ended {
    promised: u32,
    lost: u32,
}

impl Ended {
    fn and(self, more: Self) -> Self {
        Self {
            promised: self.promised + more.promised,
            lost: self.lost + more.lost,
        }
    }
}

/// Runs eight callers, each of which calls again as soon as its hold is durable or lost. About half of the calls are
/// settled before their outcome is known.
async fn call_until(rig: &Rig, over: &AtomicBool) -> Ended {
    let caller = || async {
        let mut ended = Ended::default();
        while !over.load(Ordering::SeqCst) {
            let Ok(call) = rig.admit().await else {
                ended.lost += 1;
                tokio::task::yield_now().await;
                continue;
            };
            let early = (ended.promised + ended.lost).is_multiple_of(2);
            if early {
                rig.settle_with(&call, CHARGE, IfLost::NoCharge);
            }
            if call.durable.wait().await == Err(NotDurable) {
                ended.lost += 1;
                rig.release(&call);
                continue;
            }
            ended.promised += 1;
            if !early {
                rig.settle_for(&call, CHARGE);
            }
        }
        ended
    };
    let each = tokio::join!(
        caller(),
        caller(),
        caller(),
        caller(),
        caller(),
        caller(),
        caller(),
        caller()
    );
    [
        each.0, each.1, each.2, each.3, each.4, each.5, each.6, each.7,
    ]
    .into_iter()
    .fold(Ended::default(), |sum, ended| Ended {
        promised: sum.promised + ended.promised,
        lost: sum.lost + ended.lost,
    })
}

/// Runs eight callers while `meanwhile` runs.
async fn under_load<T>(rig: &Rig, meanwhile: impl Future<Output = T>) -> (Ended, T) {
    let over = AtomicBool::new(false);
    let stop = async {
        let out = meanwhile.await;
        over.store(true, Ordering::SeqCst);
        out
    };
    tokio::join!(call_until(rig, &over), stop)
}

async fn assert_charged(rig: &Rig, ended: Ended, added: i64) {
    rig.until("what is left is booked", |stats| {
        stats.open_holds == 0 && stats.retried_closes == 0
    })
    .await;
    let charged = i64::from(ended.promised) * i64::from(CHARGE);
    assert_eq!(rig.money().await, (FUNDS + added - charged, 0), "{ended:?}");
    rig.assert_clean().await;
    rig.assert_counted().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_command_writes_costs_no_call() {
    let rig = Rig::new().await;
    let beside = Sqlite::attach(&rig.path(), &settings(rig.folder.path())).unwrap();
    let beside = Store::from(Backend::Sqlite(Arc::new(beside)));
    let top_ups = async {
        for _ in 0..60 {
            let amount = Micro::new(1_000);
            beside
                .top_up(rig.key.wallet, amount, "", &crate::Actor::cli("test"))
                .await
                .unwrap();
        }
    };
    let (ended, ()) = under_load(&rig, top_ups).await;
    assert_eq!(ended.lost, 0);
    let stats = rig.store.stats();
    assert!(stats.foreign_writes >= 1, "{stats:#?}");
    assert_eq!(stats.commits_failed, 0);
    assert_charged(&rig, ended, 60_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_writes_out_of_turn_costs_calls_and_no_money() {
    let rig = Rig::new().await;
    let wallet = rig.key.wallet.to_string();
    let created_at = async || {
        let found = rig.store.find_wallet(&wallet).await.unwrap();
        found.unwrap().created_at.get()
    };
    let before = created_at().await;
    let (mut ended, mut rounds) = (Ended::default(), 0);
    // The lock is free only for a moment between two batches, so it is a matter of chance which process gets it.
    while rounds < 200 && (rounds < 3 || rig.store.stats().commits_failed == 0) {
        let mut other = Connection::open(rig.path()).unwrap();
        let look_again = |_| {
            std::thread::yield_now();
            true
        };
        other.busy_handler(Some(look_again)).unwrap();
        let writes = tokio::task::spawn_blocking(move || {
            let update = "UPDATE wallets SET created_at = created_at + 1";
            (0..20).try_for_each(|_| other.execute(update, []).map(drop))
        });
        let (more, writes) = under_load(&rig, writes).await;
        writes.unwrap().unwrap();
        ended = ended.and(more);
        rounds += 1;
    }
    assert!(rig.store.stats().commits_failed >= 1, "{ended:?}");
    assert_charged(&rig, ended, 0).await;
    // No write of the other process was overwritten.
    assert_eq!(created_at().await, before + 20 * rounds);
}

/// Six callers, whose answers do not wait for the disk (`ledger.commit = "behind"`). Each charge is in the ledger
/// exactly once, regardless of how many commits fail.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_do_not_wait_for_the_disk_are_all_charged() {
    let rig = Rig::new().await;
    let over = AtomicBool::new(false);
    let answered = AtomicU32::new(0);
    let caller = |slow: bool| {
        let (rig, over, answered) = (&rig, &over, &answered);
        async move {
            while !over.load(Ordering::SeqCst) {
                let Ok(call) = rig.admit().await else {
                    tokio::task::yield_now().await;
                    continue;
                };
                if slow {
                    // The call ends after its batch was committed or lost.
                    let _ = call.durable.wait().await;
                } else {
                    tokio::task::yield_now().await;
                }
                rig.settle_for(&call, CHARGE);
                answered.fetch_add(1, Ordering::SeqCst);
            }
        }
    };
    let faults = async {
        for failed in 1..=10 {
            rig.failing_commits
                .store(u32::from(failed % 3 == 0) + 1, Ordering::SeqCst);
            rig.until("a commit has failed", |stats| {
                stats.commits_failed >= failed
            })
            .await;
            rig.until("the ledger is well again", |_| rig.store.healthy())
                .await;
        }
        // The second fault of a round can complete the next round too. The fault of that next round is then still
        // pending, and must not disturb the checks.
        rig.until("all faults are over", |_| {
            rig.failing_commits.load(Ordering::SeqCst) == 0 && rig.store.healthy()
        })
        .await;
        over.store(true, Ordering::SeqCst);
    };
    tokio::join!(
        caller(false),
        caller(false),
        caller(false),
        caller(false),
        caller(true),
        caller(true),
        faults
    );
    let ended = Ended {
        promised: answered.load(Ordering::SeqCst),
        lost: 0,
    };
    assert!(rig.store.stats().commits_failed >= 10);
    assert_charged(&rig, ended, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_fails_takes_the_next_one_with_it_and_no_charge() {
    let rig = Rig::new().await;
    let failing_commits = async {
        for failed in 1..=10 {
            rig.failing_commits.store(1, Ordering::SeqCst);
            rig.until("a commit has failed", |stats| {
                stats.commits_failed >= failed
            })
            .await;
            rig.until("the ledger is well again", |_| rig.store.healthy())
                .await;
        }
    };
    let (ended, ()) = under_load(&rig, failing_commits).await;
    assert!(ended.lost >= 10, "{ended:?}");
    assert_charged(&rig, ended, 0).await;
}
