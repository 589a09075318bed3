//! A store whose commits can be made to fail, and helpers for its tests.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use ledger::{Meter, Micro, Reservation, UnixMs};

use crate::faults::Faults;
use crate::sync::Mutex;
use crate::{
    Admit, AdmitError, AdmittedCall, Basis, Close, Digest, End, EntryKind, EntryQuery, IfLost,
    KeyId, KeyLimits, KeyRow, MeterText, NewKey, NewWallet, PriceVersion, Settings, Stats, Store,
};

pub(super) const NOW: UnixMs = UnixMs::new(1_800_000_000_000);
pub(super) const CREDIT: Micro = Micro::new(1_000_000);

pub(super) struct Rig {
    pub(super) folder: tempfile::TempDir,
    pub(super) store: Store,
    /// The number of commits that fail and write nothing.
    pub(super) failing_commits: Arc<AtomicU32>,
    /// The number of commits that succeed but are reported as failed.
    pub(super) misreported_commits: Arc<AtomicU32>,
    /// Commits wait while this is locked.
    pub(super) commits_wait: Arc<Mutex<()>>,
    /// No batch is written while this is locked.
    pub(super) checkpoint_lock: Arc<Mutex<u64>>,
    pub(super) key: KeyRow,
    pub(super) price: PriceVersion,
}

pub(super) fn settings(folder: &Path) -> Settings {
    Settings {
        disk_floor_bytes: 0,
        queue_wait_max: Duration::from_secs(60),
        ..Settings::at(database(folder))
    }
}

pub(super) fn database(folder: &Path) -> PathBuf {
    folder.join("tollgate.db")
}

impl Rig {
    pub(super) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(super) async fn with(set: impl FnOnce(&mut Settings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = settings(folder.path());
        set(&mut settings);
        let faults = Faults::default();
        let (store, _) = Store::open_with_faults(&settings, &faults).unwrap();
        let Faults {
            failing_commits,
            misreported_commits,
            commits_wait,
            checkpoint_lock,
        } = faults;
        let (key, price) = fund(&store).await;
        Self {
            folder,
            store,
            failing_commits,
            misreported_commits,
            commits_wait,
            checkpoint_lock,
            key,
            price,
        }
    }

    pub(super) fn path(&self) -> PathBuf {
        database(self.folder.path())
    }

    pub(super) async fn admit(&self) -> Result<AdmittedCall, AdmitError> {
        self.admit_as("req_1").await
    }

    pub(super) async fn admit_as(&self, request_id: &str) -> Result<AdmittedCall, AdmitError> {
        let ask = Reservation {
            hold: CREDIT,
            exposure: Micro::ZERO,
            tokens: 0,
            counts_in_flight: true,
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

    pub(super) fn settle(&self, admitted: &AdmittedCall) {
        self.settle_for(admitted, 250_000);
    }

    pub(super) fn settle_for(&self, admitted: &AdmittedCall, charge: u32) {
        self.settle_with(admitted, charge, IfLost::Charge);
    }

    pub(super) fn settle_with(&self, admitted: &AdmittedCall, charge: u32, if_lost: IfLost) {
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
            cost: None,
        };
        self.store.close(Close {
            if_lost,
            hold: admitted.hold,
            end,
            now: NOW,
        });
    }

    pub(super) fn release(&self, admitted: &AdmittedCall) {
        self.store.close(Close {
            if_lost: IfLost::Charge,
            hold: admitted.hold,
            end: End::Released,
            now: NOW,
        });
    }

    /// The balance and the frozen amount, after all queued commands.
    pub(super) async fn money(&self) -> (i64, i64) {
        let (wallet, key) = self.store.balance(&self.key.id).await.unwrap();
        assert_eq!(wallet.frozen, key.frozen);
        (wallet.balance.get(), wallet.frozen.get())
    }

    pub(super) async fn assert_clean(&self) {
        let report = self.store.verify().await.unwrap();
        assert!(report.is_clean(), "{:#?}", report.differences);
    }

    /// Checks that the counters agree with the ledger.
    pub(super) async fn assert_counted(&self) {
        let mut query = EntryQuery::default();
        let (mut calls, mut charge) = (0, 0);
        loop {
            let page = self.store.entries(query.clone()).await.unwrap();
            let Some(last) = page.last() else {
                break;
            };
            query.after = Some(last.cursor);
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

    pub(super) async fn until(&self, what: &str, seen: impl Fn(&Stats) -> bool) {
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

pub(super) async fn fund(store: &Store) -> (KeyRow, PriceVersion) {
    let (gift, credit_limit) = (Micro::ZERO, Micro::ZERO);
    let new = NewWallet {
        name: "acme".to_owned(),
        balance: Micro::new(10_000_000),
        gift,
        credit_limit,
    };
    let wallet = store
        .create_wallet(new, &crate::Actor::cli("test"))
        .await
        .unwrap();
    let digest = Digest::of(KeyId::random().to_string().as_bytes());
    let new = NewKey {
        wallet: wallet.id,
        name: None,
        digest,
        shown_prefix: "sk".to_owned(),
        limits: KeyLimits::default(),
        tags: Vec::new(),
    };
    let price = store
        .price_version("a/model", r#"{"input":"1"}"#)
        .await
        .unwrap();
    (
        store
            .create_key(new, &crate::Actor::cli("test"))
            .await
            .unwrap(),
        price,
    )
}
