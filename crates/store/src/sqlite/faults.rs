//! What stays true when the database fails (R8).

mod growth;
mod under_load;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ledger::{Meter, Micro, Reservation, UnixMs};
use rusqlite::Connection;

use super::backend::Sqlite;
use crate::backend::Backend;
use crate::faults::Faults;
use crate::sqlite::connection::files::beside;
use crate::sync::Mutex;
use crate::{
    Admit, AdmitError, Admitted, Basis, Close, Digest, End, EntryKind, EntryQuery, IfLost, KeyId,
    KeyLimits, KeyRow, Lost, MeterText, NewKey, NewWallet, OpenError, PriceVersion, Settings,
    Stats, Store, StoreError,
};

const NOW: UnixMs = UnixMs::new(1_800_000_000_000);
const CREDIT: Micro = Micro::new(1_000_000);

/// A store whose next commits can be made to fail.
struct Rig {
    folder: tempfile::TempDir,
    store: Store,
    /// Commits that will fail and leave nothing.
    vetoes: Arc<AtomicU32>,
    /// Commits that will succeed and look as if they had failed.
    lies: Arc<AtomicU32>,
    /// Whoever holds it has the log to itself.
    checkpoint_lock: Arc<Mutex<u64>>,
    key: KeyRow,
    price: PriceVersion,
}

fn settings(folder: &Path) -> Settings {
    Settings {
        disk_floor_bytes: 0,
        queue_wait_max: Duration::from_secs(60),
        ..Settings::at(database(folder))
    }
}

fn database(folder: &Path) -> PathBuf {
    folder.join("tollgate.db")
}

impl Rig {
    async fn new() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(set: impl FnOnce(&mut Settings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = settings(folder.path());
        set(&mut settings);
        let faults = Faults::default();
        let (store, _) = Store::open_with_faults(&settings, &faults).unwrap();
        let Faults {
            vetoes,
            lies,
            checkpoint_lock,
        } = faults;
        let (key, price) = fund(&store).await;
        Self {
            folder,
            store,
            vetoes,
            lies,
            checkpoint_lock,
            key,
            price,
        }
    }

    fn path(&self) -> PathBuf {
        database(self.folder.path())
    }

    async fn admit(&self) -> Result<Admitted, AdmitError> {
        self.admit_as("req_1").await
    }

    async fn admit_as(&self, request_id: &str) -> Result<Admitted, AdmitError> {
        let ask = Reservation {
            hold: CREDIT,
            exposure: Micro::ZERO,
            tokens: 0,
            counts: true,
        };
        let request_id = request_id.into();
        self.store
            .admit(Admit {
                wallet: self.key.wallet,
                key: self.key.id,
                ask,
                request_id,
                now: NOW,
            })
            .await
    }

    fn settle(&self, admitted: &Admitted) {
        self.settle_for(admitted, 250_000);
    }

    fn settle_for(&self, admitted: &Admitted, charge: u32) {
        self.settle_with(admitted, charge, IfLost::Charge);
    }

    fn settle_with(&self, admitted: &Admitted, charge: u32, if_lost: IfLost) {
        let meter = MeterText::from(&Meter {
            input: u64::from(charge),
            ..Meter::default()
        });
        let (charge, basis) = (Micro::new(i64::from(charge)), Basis::Reported);
        let end = End::Settled {
            charge,
            meter,
            price_version: self.price,
            basis,
            tokens: None,
        };
        self.store.close(Close {
            if_lost,
            hold: admitted.hold,
            end,
            now: NOW,
        });
    }

    fn release(&self, admitted: &Admitted) {
        self.store.close(Close {
            if_lost: IfLost::Charge,
            hold: admitted.hold,
            end: End::Released,
            now: NOW,
        });
    }

    /// The balance and the frozen amount, after everything that is queued.
    async fn money(&self) -> (i64, i64) {
        let (wallet, key) = self.store.balance(&self.key.id).await.unwrap();
        assert_eq!(wallet.frozen, key.frozen);
        (wallet.balance.get(), wallet.frozen.get())
    }

    async fn assert_clean(&self) {
        let report = self.store.verify().await.unwrap();
        assert!(report.is_clean(), "{:#?}", report.differences);
    }

    /// The counters must agree with the ledger.
    async fn assert_counted(&self) {
        let mut query = EntryQuery::default();
        let (mut calls, mut charge) = (0, 0);
        loop {
            let page = self.store.entries(query.clone()).await.unwrap();
            let Some(last) = page.last() else {
                break;
            };
            query.after = Some(last.place);
            for entry in page {
                calls += u64::from(entry.kind == EntryKind::Settled);
                charge += u64::try_from(entry.charge.get()).unwrap();
            }
        }
        let settled = self.store.settled();
        let counted = settled
            .iter()
            .map(|it| (&*it.model, it.calls, it.charge_micro, it.tokens.input));
        // One input token costs one micro-credit.
        assert!(
            counted.eq([("a/model", calls, charge, charge)]),
            "{calls} {charge}: {settled:?}"
        );
    }

    async fn until(&self, what: &str, seen: impl Fn(&Stats) -> bool) {
        let begun = Instant::now();
        while !seen(&self.store.stats()) {
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "{what}: {:#?}",
                self.store.stats()
            );
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

async fn fund(store: &Store) -> (KeyRow, PriceVersion) {
    let (gift, credit_limit) = (Micro::ZERO, Micro::ZERO);
    let new = NewWallet {
        name: "acme".to_owned(),
        balance: Micro::new(10_000_000),
        gift,
        credit_limit,
    };
    let wallet = store.create_wallet(new).await.unwrap();
    let digest = Digest::of(KeyId::random().to_string().as_bytes());
    let new = NewKey {
        wallet: wallet.id,
        name: None,
        digest,
        shown_prefix: "sk".to_owned(),
        limits: KeyLimits::default(),
    };
    let price = store
        .price_version("a/model", r#"{"input":"1"}"#)
        .await
        .unwrap();
    (store.create_key(new).await.unwrap(), price)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_commit_loses_its_admissions_and_keeps_its_closes() {
    let rig = Rig::new().await;
    let open = rig.admit().await.unwrap();
    open.durable.wait().await.unwrap();

    rig.vetoes.store(3, Ordering::SeqCst);
    rig.settle(&open);
    let lost = rig.admit().await.unwrap();
    assert_eq!(lost.durable.wait().await, Err(Lost));
    // Its owner closes the hold as usual, although there is nothing to close.
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

/// What was rolled back must not count as settled, however often it was decided.
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
    // Decided and rolled back three times before it is written: a settlement above its hold, one without a
    // charge for what was used, one that is abandoned, and a call that is lost with its charge.
    rig.vetoes.store(3, Ordering::SeqCst);
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

    rig.lies.store(1, Ordering::SeqCst);
    rig.settle(&open);
    assert_eq!(rig.money().await, (9_750_000, 0));
    assert_eq!(rig.lies.load(Ordering::SeqCst), 0);

    rig.lies.store(1, Ordering::SeqCst);
    let there = rig.admit().await.unwrap();
    assert_eq!(there.durable.wait().await, Ok(()));
    assert_eq!(rig.lies.load(Ordering::SeqCst), 0);
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
    rig.vetoes.store(1, Ordering::SeqCst);
    let failed = rig.store.top_up(rig.key.wallet, CREDIT, "").await;
    assert!(matches!(failed, Err(StoreError::Unavailable)), "{failed:?}");
    assert_eq!(rig.money().await, (10_000_000, 0));
    rig.store.top_up(rig.key.wallet, CREDIT, "").await.unwrap();
    assert_eq!(rig.money().await, (11_000_000, 0));
    rig.assert_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_comes_back_without_traffic() {
    let rig = Rig::new().await;
    rig.vetoes.store(2, Ordering::SeqCst);
    let lost = rig.admit().await.unwrap();
    assert_eq!(lost.durable.wait().await, Err(Lost));
    rig.until("commits succeed again", |_| rig.store.healthy())
        .await;
    assert_eq!(rig.vetoes.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_commits_fail_nobody_is_admitted() {
    let rig = Rig::new().await;
    let open = rig.admit().await.unwrap();
    open.durable.wait().await.unwrap();
    rig.vetoes.store(u32::MAX, Ordering::SeqCst);
    let lost = rig.admit().await.unwrap();
    assert_eq!(lost.durable.wait().await, Err(Lost));
    rig.release(&lost);
    for failed in 1..=3 {
        rig.until("a commit has failed", |stats| {
            stats.commits_failed >= failed
        })
        .await;
        let refused = rig.admit().await.unwrap_err();
        assert_eq!(refused, AdmitError::Unavailable);
    }
    // Calls admitted before continue, and are closed when commits succeed again.
    rig.settle(&open);
    rig.vetoes.store(0, Ordering::SeqCst);
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
    // The batch stays open until somebody waits for it.
    let rig = Rig::with(|settings| settings.gather = Duration::from_secs(60)).await;
    rig.vetoes.store(2, Ordering::SeqCst);
    // One ends in the failing batch, one after it, and the caller of the third got no answer.
    let (early, late, unanswered) = (
        rig.admit_as("req_early").await.unwrap(),
        rig.admit_as("req_late").await.unwrap(),
        rig.admit_as("req_unanswered").await.unwrap(),
    );
    rig.settle_for(&early, 1);
    rig.settle_with(&unanswered, 4, IfLost::Drop);
    assert_eq!(late.durable.wait().await, Err(Lost));
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
        // The poisoned batch may lose a call, and nobody is admitted until a commit succeeds.
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
    // Its hold stays open. Everything else is booked.
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_another_holds_the_lock_calls_are_busy_and_closes_wait() {
    let rig = Rig::with(|settings| settings.queue_wait_max = Duration::from_millis(60)).await;
    let open = rig.admit().await.unwrap();
    open.durable.wait().await.unwrap();
    let other = Connection::open(rig.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    rig.settle(&open);
    assert_eq!(rig.admit().await.unwrap_err(), AdmitError::Busy);
    assert!(
        rig.store
            .key_by_digest(&Digest::of(b""))
            .await
            .unwrap()
            .is_none(),
        "reads go on"
    );
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(rig.money().await, (9_750_000, 0));
    assert_eq!(rig.store.stats().commits_failed, 0);
    rig.assert_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn below_the_floor_nobody_is_admitted_and_the_admitted_settle() {
    let rig = Rig::new().await;
    let Rig {
        folder,
        store,
        key,
        price,
        ..
    } = rig;
    drop(store);
    let floor = Settings {
        disk_floor_bytes: u64::MAX,
        ..settings(folder.path())
    };
    let (store, _) = Store::open(&floor).unwrap();
    let ask = Reservation {
        hold: CREDIT,
        exposure: Micro::ZERO,
        tokens: 0,
        counts: true,
    };
    let call = Admit {
        wallet: key.wallet,
        key: key.id,
        ask,
        request_id: "req_1".into(),
        now: NOW,
    };
    assert_eq!(
        store.admit(call).await.unwrap_err(),
        AdmitError::Unavailable
    );
    assert!(!store.healthy());
    // Everything else continues.
    store.top_up(key.wallet, CREDIT, "").await.unwrap();
    assert_eq!(
        store.balance(&key.id).await.unwrap().0.balance,
        Micro::new(11_000_000)
    );
    assert!(price.get() > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_is_folded_and_does_not_grow_without_bound() {
    let folder = tempfile::tempdir().unwrap();
    let wal_bytes_max = 128 * 1024;
    let (store, _) = Store::open(&Settings {
        wal_bytes_max,
        ..settings(folder.path())
    })
    .unwrap();
    let (key, price) = fund(&store).await;
    let rig = Rig {
        folder,
        store,
        vetoes: Arc::default(),
        lies: Arc::default(),
        checkpoint_lock: Arc::default(),
        key,
        price,
    };
    let mut longest = 0;
    let begun = Instant::now();
    // Each call is a batch of its own, about 25 KiB of log. After a checkpoint the log restarts from the
    // beginning.
    loop {
        let stats = rig.store.stats();
        if stats.checkpoints >= 3 && stats.wal_frames < longest / 2 {
            break;
        }
        longest = longest.max(stats.wal_frames);
        assert!(begun.elapsed() < Duration::from_secs(30), "{stats:#?}");
        let call = rig.admit().await.unwrap();
        call.durable.wait().await.unwrap();
        rig.release(&call);
    }
    rig.money().await;
    assert_eq!(
        rig.store.stats().foreign_writes,
        0,
        "folding keeps the row cache"
    );
    rig.assert_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_is_folded_in_an_open_batch_is_begun_anew_by_it() {
    let rig = Rig::with(|settings| settings.gather = Duration::from_secs(60)).await;
    let checkpointer = Connection::open(rig.path()).unwrap();
    let copied = || -> i64 {
        let copy = "PRAGMA wal_checkpoint(PASSIVE)";
        checkpointer.query_row(copy, [], |row| row.get(2)).unwrap()
    };
    for _ in 0..5 {
        let call = rig.admit().await.unwrap();
        call.durable.wait().await.unwrap();
        rig.release(&call);
    }
    rig.money().await;
    // Nobody waits for it, so its batch stays open.
    let call = rig.admit().await.unwrap();
    let long = {
        let mut folds = rig.checkpoint_lock.lock();
        *folds += 1;
        copied()
    };
    call.durable.wait().await.unwrap();
    assert!(copied() < long / 2, "{} of {long}", copied());
    rig.release(&call);
    assert_eq!(rig.money().await, (10_000_000, 0));
    assert_eq!(rig.store.stats().foreign_writes, 0);
    rig.assert_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(
    clippy::await_holding_lock,
    reason = "what is waited for does not wait for it"
)]
async fn while_the_log_is_folded_calls_are_decided_and_not_promised() {
    let rig = Rig::new().await;
    let open = rig.admit().await.unwrap();
    open.durable.wait().await.unwrap();
    let folding = rig.checkpoint_lock.lock();
    rig.settle(&open);
    // Calls for three batches, one after the other, all in the batch that waits.
    let mut calls = Vec::new();
    for _ in 0..3 {
        calls.push(rig.admit().await.unwrap());
    }
    assert!(calls.iter().all(|call| !call.durable.is_done()));
    drop(folding);
    for call in &calls {
        call.durable.wait().await.unwrap();
        rig.settle(call);
    }
    assert_eq!(rig.money().await, (9_000_000, 0));
    assert_eq!(rig.store.stats().commits_failed, 0);
    rig.assert_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_schema_is_refused_and_left_alone() {
    let Rig { folder, store, .. } = Rig::new().await;
    drop(store);
    let (path, settings) = (database(folder.path()), settings(folder.path()));
    let newer = "INSERT INTO refinery_schema_history SELECT 999, 'later', applied_on, checksum
                 FROM refinery_schema_history LIMIT 1";
    Connection::open(&path)
        .unwrap()
        .execute_batch(newer)
        .unwrap();
    for refused in [
        Store::open(&settings).map(drop),
        Store::attach(&settings).map(drop),
    ] {
        let refused = refused.unwrap_err();
        assert!(
            matches!(refused, OpenError::NewerSchema { found: 999, .. }),
            "{refused}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_file_is_refused_by_name_and_left_alone() {
    let Rig { folder, store, .. } = Rig::new().await;
    drop(store);
    let (path, settings) = (database(folder.path()), settings(folder.path()));
    let whole = std::fs::read(&path).unwrap();
    assert!(
        std::fs::metadata(beside(&path, "-wal")).is_err(),
        "the last to leave folds the log"
    );
    for (what, damage) in [
        ("header", 0..64),
        ("first page", 100..160),
        ("some tables", 4_096..whole.len().min(40_960)),
    ] {
        let mut bytes = whole.clone();
        bytes[damage].fill(0x5a);
        std::fs::write(&path, &bytes).unwrap();
        let refused = Store::open(&settings).map(drop).unwrap_err();
        assert!(
            matches!(refused, OpenError::Corrupt { .. }),
            "{what}: {refused}"
        );
        assert!(
            refused.to_string().contains(&*path.to_string_lossy()),
            "{what}: {refused}"
        );
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{what}");
    }
    std::fs::write(&path, &whole).unwrap();
    Store::open(&settings).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_another_program_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (path, settings) = (database(folder.path()), settings(folder.path()));
    Connection::open(&path)
        .unwrap()
        .execute_batch("CREATE TABLE theirs (a)")
        .unwrap();
    let refused = Store::open(&settings).map(drop).unwrap_err();
    assert!(matches!(refused, OpenError::Foreign { .. }), "{refused}");
}
