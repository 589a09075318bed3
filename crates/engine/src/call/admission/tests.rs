//! Tests that the caller's answer, the ledger and the journal agree, whether the commit succeeds or fails.

use std::sync::atomic::Ordering;
use std::time::Instant;

use ledger::PriceCard;
use protocol::native::AnswerSummary;
use protocol::{Kind, Profile};
use store::{
    Digest, EntryKind, EntryQuery, EntryRow, Faults, JournalQuery, KeyLimits, KeyRow, Media,
    MediaPlace, MediaSettings, NewKey, NewWallet, Store,
};
use tempfile::TempDir;
use upstream::Timeouts;

use super::*;
use crate::call::arrival::Arrival;
use crate::call::progress::Progress;
use crate::catalog::{Catalog, ModelSpec};
use crate::settings::{Commit, Settings};

/// The number of input tokens of each call, which is also its charge in micro-credits.
pub(crate) const USED: u64 = 7;
const FUNDS: Micro = Micro::new(10_000_000);

pub(crate) struct Scene {
    engine: Arc<Engine>,
    faults: Faults,
    key: KeyRow,
    model: Arc<Model>,
    _folder: TempDir,
}

impl Scene {
    pub(crate) async fn new(commit: Commit) -> Self {
        let folder = TempDir::new().unwrap();
        let mut database = store::Settings::at(folder.path().join("tollgate.db"));
        database.disk_floor_bytes = 0;
        // A batch ends only when a task waits for it.
        database.gather = Duration::from_secs(60);
        let faults = Faults::default();
        let (store, _) = Store::open_with_faults(&database, &faults).unwrap();
        let new = NewWallet {
            name: "acme".to_owned(),
            balance: FUNDS,
            gift: Micro::ZERO,
            credit_limit: Micro::ZERO,
        };
        let wallet = store
            .create_wallet(new, &store::Actor::cli("test"))
            .await
            .unwrap();
        let new = NewKey {
            wallet: wallet.id,
            name: None,
            digest: Digest::of(b"secret"),
            shown_prefix: "sk".to_owned(),
            limits: KeyLimits::default(),
            tags: Vec::new(),
        };
        let key = store
            .create_key(new, &store::Actor::cli("test"))
            .await
            .unwrap();
        let price: PriceCard =
            serde_json::from_str(r#"{"input":"1","output":"1","realtime_minute":"60"}"#).unwrap();
        let spec = ModelSpec {
            id: "a/model".to_owned(),
            kind: Kind::Text,
            enabled: true,
            created: 0,
            routes: Vec::new(),
            routing: crate::route::Routing::default(),
            price,
            profile: Profile::default(),
        };
        let (none, times) = (Catalog::default(), Timeouts::default());
        let catalog = Catalog::build(Vec::new(), &times, vec![spec], &none, &store);
        let model = Arc::clone(catalog.await.unwrap().get("a/model").unwrap());
        let media = Media::open(&MediaSettings {
            place: MediaPlace::Folder(folder.path().join("media")),
            disk_floor_bytes: 0,
            ..MediaSettings::default()
        });
        let settings = Settings {
            commit,
            ..Settings::default()
        };
        Self {
            engine: Arc::new(Engine::new(store, media.unwrap(), settings)),
            faults,
            key,
            model,
            _folder: folder,
        }
    }

    pub(crate) fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// Admits a call whose request has been sent. Its usage is `USED` tokens.
    async fn admitted(&self) -> Box<Admission> {
        let used = Meter {
            input: USED,
            ..Meter::default()
        };
        self.admitted_for(Estimate::voice(used, Metering::Speech))
            .await
    }

    /// Like `admitted`, with a given estimate.
    pub(crate) async fn admitted_for(&self, estimate: Estimate) -> Box<Admission> {
        let key = KeyHead {
            key: self.key.id,
            wallet: self.key.wallet,
            enabled: true,
            expires_at: None,
            rpm_limit: None,
            models: None,
        };
        let arrival = Arrival {
            key: key.clone(),
            request_id: "req_1".into(),
            endpoint: "/v1/chat/completions",
            at: Instant::now(),
            trace: None,
        };
        let progress = Arc::new(Progress::new(&self.engine));
        progress.mark_sent();
        let record = OpenRecord::begin(progress, &arrival);
        let admission = Admission::request(&key, &self.model, &estimate, record).await;
        admission.unwrap()
    }

    /// The charge in the ledger, and the status, end and charge of the only journal row.
    pub(crate) async fn charge_and_journal(&self) -> (i64, (u16, String, i64)) {
        while !self.engine.store.healthy() {
            tokio::task::yield_now().await;
        }
        self.engine.tasks.close();
        self.engine.tasks.wait().await;
        let store = &self.engine.store;
        store.flush().await.unwrap();
        let (wallet, key) = store.balance(&self.key.id).await.unwrap();
        assert_eq!(wallet.frozen, Micro::ZERO);
        assert_eq!(FUNDS.checked_sub(wallet.balance), Some(key.usage));
        let entries = store.entries(EntryQuery::default()).await.unwrap();
        // Sessions are charged in parts.
        let is_charge = |it: &&EntryRow| matches!(it.kind, EntryKind::Settled | EntryKind::Part);
        let of_calls = entries.iter().filter(is_charge);
        let charged: i64 = of_calls.map(|entry| entry.charge.get()).sum();
        assert_eq!(charged, key.usage.get());
        assert!(store.verify().await.unwrap().is_clean());
        let rows = store.journal(JournalQuery::default()).await.unwrap();
        let [entry] = rows.as_slice() else {
            panic!("{} rows", rows.len());
        };
        let row = &entry.row;
        let end = row.outcome.as_deref().unwrap_or_default().to_owned();
        (charged, (row.status, end, row.charge.get()))
    }
}

fn charged(status: u16) -> (i64, (u16, String, i64)) {
    (7, (status, "settled".to_owned(), 7))
}

fn free(status: u16) -> (i64, (u16, String, i64)) {
    (0, (status, "released".to_owned(), 0))
}

/// Settles a call in its own task.
fn settle(admission: Box<Admission>) -> tokio::task::JoinHandle<Result<(), Failure>> {
    tokio::spawn(async move {
        admission
            .settle_whole(&AnswerSummary::default(), None)
            .await
    })
}

/// Advances the clock beyond the longest wait for a hold to be confirmed. The clock is paused, so no test sleeps.
async fn much_later() {
    tokio::time::pause();
    for _ in 0..15 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    tokio::time::resume();
}

#[tokio::test]
#[expect(
    clippy::await_holding_lock,
    reason = "what is waited for does not wait for it"
)]
async fn a_slow_commit_makes_the_answer_late() {
    let scene = Scene::new(Commit::BeforeAnswer).await;
    let gate = scene.faults.checkpoint_lock.lock();
    let call = settle(scene.admitted().await);
    much_later().await;
    assert!(!call.is_finished(), "nobody knows yet what to tell");
    drop(gate);
    assert!(call.await.unwrap().is_ok());
    assert_eq!(scene.charge_and_journal().await, charged(200));
}

#[tokio::test]
#[expect(
    clippy::await_holding_lock,
    reason = "what is waited for does not wait for it"
)]
async fn a_slow_commit_that_fails_in_the_end_charges_nobody() {
    let scene = Scene::new(Commit::BeforeAnswer).await;
    let gate = scene.faults.checkpoint_lock.lock();
    let call = settle(scene.admitted().await);
    much_later().await;
    scene.faults.failing_commits.store(2, Ordering::SeqCst);
    drop(gate);
    assert_eq!(call.await.unwrap().unwrap_err().status(), 503);
    assert_eq!(scene.charge_and_journal().await, free(503));
}

#[tokio::test]
#[expect(
    clippy::await_holding_lock,
    reason = "what is waited for does not wait for it"
)]
async fn a_caller_who_leaves_before_the_commit_is_journaled_as_the_ledger_has_it() {
    for (failing_commits, expected) in [(0, charged(499)), (2, free(499))] {
        let scene = Scene::new(Commit::BeforeAnswer).await;
        let gate = scene.faults.checkpoint_lock.lock();
        let call = settle(scene.admitted().await);
        tokio::task::yield_now().await;
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled());
        scene
            .faults
            .failing_commits
            .store(failing_commits, Ordering::SeqCst);
        drop(gate);
        assert_eq!(scene.charge_and_journal().await, expected);
    }
}

/// With `ledger.commit = "behind"`, the answer is sent before the commit fails.
#[tokio::test]
async fn an_answer_that_did_not_wait_is_charged_though_its_commit_fails() {
    let scene = Scene::new(Commit::Behind).await;
    scene.faults.failing_commits.store(2, Ordering::SeqCst);
    let admission = scene.admitted().await;
    assert!(
        admission
            .settle_whole(&AnswerSummary::default(), None)
            .await
            .is_ok()
    );
    // `flush` waits for the batch, which would otherwise stay open.
    assert!(scene.engine.store.flush().await.is_err());
    assert_eq!(scene.charge_and_journal().await, charged(200));
}
