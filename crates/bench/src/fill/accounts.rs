//! Creates wallets and keys, with entries and tasks. Each wallet and key also gets an audit row.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use ledger::{Meter, Micro, Reservation};
use store::{
    Actor, Admit, AdmitError, Basis, Close, Digest, End, IfLost, KeyLimits, KeyRow, MeterText,
    NewKey, NewTask, NewWallet, PriceVersion, RunningTaskState, Store, TaskEnd, TaskId, WalletRow,
};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::calls::now;
use super::command::Size;

/// The number of changes that are sent to the ledger writer at the same time.
const CHANGES_AT_ONCE: usize = 256;
/// The maximum number of retries of an admission while the ledger is busy, and the pause before each.
const BUSY_RETRIES: usize = 1_000;
const BUSY_PAUSE: Duration = Duration::from_millis(10);
const CARD: &str = r#"{"input":"1.25","output":"10"}"#;
const LIMIT: u32 = 1_000_000;

pub(crate) struct Accounts {
    pub(crate) wallets: Vec<WalletRow>,
    /// The keys are spread over the wallets: key n belongs to wallet n modulo the number of
    /// wallets.
    pub(crate) keys: Vec<KeyRow>,
    pub(crate) secrets: Vec<String>,
}

impl Accounts {
    pub(super) async fn create(store: &Arc<Store>, size: Size) -> io::Result<Self> {
        let wallets = together(size.wallets, |number| {
            let store = Arc::clone(store);
            async move {
                let new = NewWallet {
                    name: format!("customer-{number:04}"),
                    balance: Micro::new(1_000_000_000_000),
                    gift: Micro::ZERO,
                    credit_limit: Micro::ZERO,
                };
                store.create_wallet(new, &Actor::cli("bench")).await
            }
        })
        .await?;
        let secrets: Vec<String> = (0..size.keys).map(|n| format!("sk-tg-{n:043}")).collect();
        let keys = together(size.keys, |number| {
            let store = Arc::clone(store);
            let wallet = wallets.get(number % wallets.len().max(1)).map(|row| row.id);
            let digest = Digest::of(format!("sk-tg-{number:043}").as_bytes());
            async move {
                let wallet = wallet.ok_or(store::StoreError::Unavailable)?;
                let new = NewKey {
                    wallet,
                    name: Some(format!("service-{number:05}")),
                    digest,
                    shown_prefix: format!("sk-tg-{number:06}"),
                    limits: KeyLimits {
                        rpm: Some(LIMIT),
                        ..KeyLimits::default()
                    },
                    tags: vec![["production", "staging", "research"][number % 3].to_owned()],
                };
                store.create_key(new, &Actor::cli("bench")).await
            }
        })
        .await?;
        Ok(Self {
            wallets,
            keys,
            secrets,
        })
    }

    /// Books calls, so that each wallet has entries.
    pub(super) async fn book(&self, store: &Arc<Store>, entries: usize) -> io::Result<()> {
        let version = price(store).await?;
        let keys = Arc::new(self.keys.clone());
        together(entries, |number| {
            let (store, keys) = (Arc::clone(store), Arc::clone(&keys));
            async move {
                let Some(key) = keys.get(number % keys.len().max(1)) else {
                    return Ok(());
                };
                let admitted = admitted(&store, key).await?;
                store.close(Close {
                    if_lost: IfLost::Charge,
                    hold: admitted.hold,
                    end: settled(version),
                    now: now(),
                });
                Ok::<(), AdmitError>(())
            }
        })
        .await?;
        store.flush().await.map_err(io::Error::other)
    }

    /// Creates video tasks that have ended.
    pub(super) async fn end_tasks(&self, store: &Arc<Store>, tasks: usize) -> io::Result<()> {
        let version = price(store).await?;
        let keys = Arc::new(self.keys.clone());
        together(tasks, |number| {
            let (store, keys) = (Arc::clone(store), Arc::clone(&keys));
            async move {
                if let Some(key) = keys.get(number * 7 % keys.len().max(1)) {
                    let opened = store.open_task(task(key, version)).await;
                    let opened = opened.map_err(|_| store::StoreError::Unavailable)?;
                    let end = TaskEnd {
                        claim: opened.claim,
                        status: "succeeded".into(),
                        end: settled(version),
                        snapshot: (*br#"{"status":"succeeded"}"#).into(),
                        now: now(),
                    };
                    store.end_task(end).await?;
                }
                Ok::<(), store::StoreError>(())
            }
        })
        .await?;
        Ok(())
    }
}

async fn price(store: &Store) -> io::Result<PriceVersion> {
    let version = store.price_version("maker/filled", CARD).await;
    version.map_err(io::Error::other)
}

/// Admits a call. At times this program is faster than the ledger writer, so it retries while the ledger is busy.
async fn admitted(store: &Store, key: &KeyRow) -> Result<store::AdmittedCall, AdmitError> {
    for _ in 0..BUSY_RETRIES {
        match store.admit(admission(key)).await {
            Err(AdmitError::Busy) => sleep(BUSY_PAUSE).await,
            decided => return decided,
        }
    }
    store.admit(admission(key)).await
}

fn admission(key: &KeyRow) -> Admit {
    Admit {
        wallet: key.wallet,
        key: key.id,
        ask: Reservation {
            hold: Micro::new(5_000),
            exposure: Micro::ZERO,
            tokens: 1,
            counts_in_flight: false,
        },
        request_id: "req_filled".into(),
        now: now(),
    }
}

fn settled(price_version: PriceVersion) -> End {
    let meter = Meter {
        input: 1_000,
        output: 200,
        ..Meter::default()
    };
    End::Settled {
        charge: Micro::new(3_250),
        meter: MeterText::from(&meter),
        price_version,
        basis: Basis::Reported,
        tokens: Some(1_200),
        cost: None,
    }
}

fn task(key: &KeyRow, price_version: PriceVersion) -> NewTask {
    NewTask {
        id: TaskId::random(now()),
        admit: admission(key),
        protocol: "video-a".into(),
        endpoint: "/v1/videos/generations".into(),
        model: "maker/filled".into(),
        price_version,
        bound: Box::new(Meter {
            video_seconds: 8,
            ..Meter::default()
        }),
        memo: None,
        callback_url: None,
        running_state: RunningTaskState {
            status: "running".into(),
            progress: Some(50),
            snapshot: (*br#"{"status":"running"}"#).into(),
        },
        lease: Duration::from_secs(3_600),
        lifetime: Duration::from_secs(3_600),
    }
}

/// Runs many changes concurrently, and returns their results in order.
async fn together<T, E, F>(count: usize, change: impl Fn(usize) -> F) -> io::Result<Vec<T>>
where
    T: Send + 'static,
    E: std::error::Error + Send + Sync + 'static,
    F: Future<Output = Result<T, E>> + Send + 'static,
{
    let mut results = Vec::with_capacity(count);
    let mut first = 0;
    while first < count {
        let last = count.min(first + CHANGES_AT_ONCE);
        let mut running = JoinSet::new();
        for number in first..last {
            let changing = change(number);
            running.spawn(async move { (number, changing.await) });
        }
        let mut changed = running.join_all().await;
        changed.sort_by_key(|(number, _)| *number);
        for (_, result) in changed {
            results.push(result.map_err(io::Error::other)?);
        }
        first = last;
    }
    Ok(results)
}
