//! Tests commits that fail, or that are only reported as failed.

use std::sync::atomic::Ordering;
use std::time::Duration;

use ledger::{Meter, Micro};
use rusqlite::Connection;

use super::rig::*;
use crate::{
    AdmitError, Basis, Close, End, EntryQuery, IfLost, MeterText, NotDurable, Store, StoreError,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_commit_loses_its_admissions_and_keeps_its_closes() {
    let rig = Rig::new().await;
    let open = rig.admit().await.unwrap();
    open.durable.wait().await.unwrap();

    rig.failing_commits.store(3, Ordering::SeqCst);
    rig.settle(&open);
    let lost = rig.admit().await.unwrap();
    assert_eq!(lost.durable.wait().await, Err(NotDurable));
    // The owner closes the hold as usual, although the hold does not exist.
    rig.release(&lost);
    rig.until("the close is booked", |stats| {
        stats.open_holds == 0 && stats.retried_closes == 0
    })
    .await;

    assert_eq!(rig.money().await, (9_750_000, 0));
    let stats = rig.store.stats();
    assert!(stats.commits_failed >= 1, "{stats:#?}");
    assert_eq!((stats.late_closes, stats.stuck_closes), (1, 0));
    assert!(rig.store.healthy());
    let next = rig.admit().await.unwrap();
    next.durable.wait().await.unwrap();
    rig.settle(&next);
    assert_eq!(rig.money().await, (9_500_000, 0));
    rig.assert_clean().await;
}

/// Settlements that were rolled back are not counted, regardless of how often they were decided.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_count_what_was_committed() {
    let rig = Rig::new().await;
    let other = rig.store.price_version("b/model", r#"{"output":"0"}"#);
    let other = other.await.unwrap();
    let mut kept = Vec::new();
    for _ in 0..3 {
        let call = rig.admit().await.unwrap();
        call.durable.wait().await.unwrap();
        kept.push(call);
    }
    // Each of these is decided and rolled back three times before it is written: a settlement above its hold, a
    // settlement that charges nothing for its usage, an abandoned hold, and a settled call whose hold is lost.
    rig.failing_commits.store(3, Ordering::SeqCst);
    rig.settle_for(&kept[0], 1_500_000);
    let meter = MeterText::from(&Meter {
        output: 7,
        ..Meter::default()
    });
    let free = End::Settled {
        charge: Micro::ZERO,
        meter,
        price_version: other,
        basis: Basis::Reported,
        tokens: None,
        cost: None,
    };
    for (call, end) in [(&kept[1], free), (&kept[2], End::Abandoned)] {
        rig.store.close(Close {
            hold: call.hold,
            end,
            now: NOW,
            if_lost: IfLost::Charge,
        });
    }
    if let Ok(lost) = rig.admit().await {
        rig.settle_for(&lost, 999);
    }
    rig.until("the closes are booked", |stats| {
        stats.open_holds == 0 && stats.retried_closes == 0 && stats.commits_failed >= 1
    })
    .await;
    let stats = rig.store.stats();
    assert_eq!(
        (stats.above_hold, stats.zero_charges, stats.abandoned),
        (1, 1, 1),
        "{stats:#?}"
    );
    let entries = rig.store.entries(EntryQuery::default()).await.unwrap();
    let charged: i64 = entries.iter().map(|entry| entry.charge.get()).sum();
    let mut settled = rig.store.settled();
    settled.sort_unstable_by(|a, b| a.model.cmp(&b.model));
    let counted: u64 = settled.iter().map(|it| it.charge_micro).sum();
    assert_eq!(i64::try_from(counted).unwrap(), charged);
    assert_eq!((settled[1].calls, settled[1].tokens.output), (1, 7));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_is_lost_has_happened_once() {
    let rig = Rig::new().await;
    let open = rig.admit().await.unwrap();
    open.durable.wait().await.unwrap();

    rig.misreported_commits.store(1, Ordering::SeqCst);
    rig.settle(&open);
    assert_eq!(rig.money().await, (9_750_000, 0));
    assert_eq!(rig.misreported_commits.load(Ordering::SeqCst), 0);

    rig.misreported_commits.store(1, Ordering::SeqCst);
    let there = rig.admit().await.unwrap();
    assert_eq!(there.durable.wait().await, Ok(()));
    assert_eq!(rig.misreported_commits.load(Ordering::SeqCst), 0);
    assert_eq!(rig.money().await, (9_750_000, 1_000_000));
    rig.release(&there);
    assert_eq!(rig.money().await, (9_750_000, 0));
    let stats = rig.store.stats();
    assert_eq!((stats.late_closes, stats.commits_failed), (0, 0));
    rig.assert_clean().await;
    rig.assert_counted().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_change_says_so_and_changes_nothing() {
    let rig = Rig::new().await;
    rig.failing_commits.store(1, Ordering::SeqCst);
    let failed = rig
        .store
        .top_up(rig.key.wallet, CREDIT, "", &crate::Actor::cli("test"))
        .await;
    assert!(matches!(failed, Err(StoreError::Unavailable)), "{failed:?}");
    assert_eq!(rig.money().await, (10_000_000, 0));
    rig.store
        .top_up(rig.key.wallet, CREDIT, "", &crate::Actor::cli("test"))
        .await
        .unwrap();
    assert_eq!(rig.money().await, (11_000_000, 0));
    rig.assert_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_comes_back_without_traffic() {
    let rig = Rig::new().await;
    rig.failing_commits.store(2, Ordering::SeqCst);
    let lost = rig.admit().await.unwrap();
    assert_eq!(lost.durable.wait().await, Err(NotDurable));
    rig.until("commits succeed again", |_| rig.store.healthy())
        .await;
    assert_eq!(rig.failing_commits.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_commits_fail_nobody_is_admitted() {
    let rig = Rig::new().await;
    let open = rig.admit().await.unwrap();
    open.durable.wait().await.unwrap();
    rig.failing_commits.store(u32::MAX, Ordering::SeqCst);
    let lost = rig.admit().await.unwrap();
    assert_eq!(lost.durable.wait().await, Err(NotDurable));
    rig.release(&lost);
    for failed in 1..=3 {
        rig.until("a commit has failed", |stats| {
            stats.commits_failed >= failed
        })
        .await;
        let refused = rig.admit().await.unwrap_err();
        assert_eq!(refused, AdmitError::Unavailable);
    }
    // Calls that were admitted before the failure continue, and are closed when commits succeed again.
    rig.settle(&open);
    rig.failing_commits.store(0, Ordering::SeqCst);
    rig.until("commits succeed again", |_| rig.store.healthy())
        .await;
    let next = rig.admit().await.unwrap();
    next.durable.wait().await.unwrap();
    rig.release(&next);
    assert_eq!(rig.money().await, (9_750_000, 0));
    rig.assert_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answered_call_is_charged_although_its_hold_was_lost() {
    // The batch stays open until a caller waits for it.
    let rig = Rig::with(|settings| settings.gather = Duration::from_secs(60)).await;
    rig.failing_commits.store(2, Ordering::SeqCst);
    // The first call ends in the failing batch, the second after it, and the third was not answered.
    let (early, late, unanswered) = (
        rig.admit_as("req_early").await.unwrap(),
        rig.admit_as("req_late").await.unwrap(),
        rig.admit_as("req_unanswered").await.unwrap(),
    );
    rig.settle_for(&early, 1);
    rig.settle_with(&unanswered, 4, IfLost::NoCharge);
    assert_eq!(late.durable.wait().await, Err(NotDurable));
    rig.settle_for(&late, 2);
    // A second close changes nothing, even if the hold was lost.
    rig.settle_for(&late, 2);
    rig.until("commits succeed again", |_| rig.store.healthy())
        .await;
    assert_eq!(rig.money().await, (10_000_000 - 3, 0));
    let stats = rig.store.stats();
    assert_eq!((stats.lost_holds, stats.retried_closes), (0, 0));
    let entries = rig.store.entries(EntryQuery::default()).await.unwrap();
    let charged = entries.iter().filter(|entry| entry.charge > Micro::ZERO);
    let charged: Vec<_> = charged
        .map(|entry| {
            let call = entry.call.as_ref().unwrap();
            (&*call.request_id, entry.charge.get(), entry.note.is_some())
        })
        .collect();
    assert_eq!(charged, [("req_early", 1, true), ("req_late", 2, true)]);
    rig.assert_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_close_that_cannot_be_booked_does_not_stop_the_others() {
    let rig = Rig::new().await;
    Connection::open(rig.path())
        .unwrap()
        .execute_batch(
            "CREATE TRIGGER poison BEFORE INSERT ON entries WHEN NEW.request_id = 'req_poison'
             BEGIN SELECT RAISE(ROLLBACK, 'poison'); END",
        )
        .unwrap();
    let poison = rig.admit_as("req_poison").await.unwrap();
    let good = rig.admit().await.unwrap();
    good.durable.wait().await.unwrap();
    rig.settle(&good);
    rig.settle(&poison);
    let later = loop {
        // The batch with the failing close may lose a call, and no call is admitted until a commit succeeds.
        match rig.admit().await {
            Ok(later) if later.durable.wait().await.is_ok() => break later,
            Ok(lost) => rig.release(&lost),
            Err(error) => assert_eq!(error, AdmitError::Unavailable),
        }
        tokio::task::yield_now().await;
    };
    rig.until("the poison is set aside", |stats| stats.stuck_closes == 1)
        .await;
    rig.settle(&later);
    // The hold stays open. Everything else is booked.
    assert_eq!(rig.money().await, (9_500_000, 1_000_000));
    rig.assert_clean().await;

    let path = rig.path();
    let Rig { folder, store, .. } = rig;
    drop(store);
    Connection::open(path)
        .unwrap()
        .execute_batch("DROP TRIGGER poison")
        .unwrap();
    let (store, recovery) = Store::open(&settings(folder.path())).unwrap();
    assert_eq!((recovery.abandoned, recovery.held), (1, CREDIT));
    assert!(store.verify().await.unwrap().is_clean());
}
