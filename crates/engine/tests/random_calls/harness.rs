//! The engine under test, its store and its clock.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use engine::{Catalog, Engine, ModelSpec, RouteLimits, RouteSpec, Routing, Settings};
use ledger::{Micro, PriceCard};
use protocol::{Kind, Profile};
use store::{
    Actor, Digest, EntryKind, EntryQuery, KeyHead, KeyLimits, Media, MediaPlace, MediaSettings,
    NewKey, NewWallet, Store,
};
use tempfile::TempDir;
use tokio::runtime::Builder;
use tokio::task::{JoinHandle, yield_now};
use upstream::{Channel, ChannelSpec, Protocol, Timeouts};

use crate::client::{View, run_call};
use crate::plan::{Payer, Plan};
use crate::scripted_upstream::{FALLBACK_MODEL, Script, serve};

/// How far the clock advances when there is nothing left to do.
const STEP: Duration = Duration::from_millis(100);
/// The amount that each wave adds to the wallet that has too little.
const POOR: i64 = 4_000;
const RICH: i64 = 1_000_000_000;
/// The requests per minute that a limited route accepts; a wave has some hundred calls for it.
const LIMIT_RPM: u32 = 60;

/// Runs work on a clock that advances only on demand. By default, a paused clock also advances whenever the runtime is
/// idle, even while a thread of the store is working. A running blocking task prevents that.
pub(crate) fn in_virtual_time(work: impl Future<Output = ()>) {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async move {
        let (done, wait) = std::sync::mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || {
            let _ = wait.recv();
        });
        work.await;
        drop(done);
    });
}

pub(crate) struct Wave {
    pub(crate) script: Arc<Script>,
    pub(crate) seen: BTreeMap<u64, View>,
}

pub(crate) struct Harness {
    pub(crate) store: Store,
    keys: BTreeMap<Payer, KeyHead>,
    folder: TempDir,
}

impl Harness {
    pub(crate) async fn new() -> Self {
        // Uses memory if possible, because syncs to a disk are tested elsewhere.
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() {
            TempDir::new_in(memory).unwrap()
        } else {
            TempDir::new().unwrap()
        };
        let mut database = store::Settings::at(folder.path().join("tollgate.db"));
        database.disk_floor_bytes = 0;
        let (store, _) = Store::open(&database).unwrap();
        let mut keys = BTreeMap::new();
        for (payer, balance, concurrency) in [
            (Payer::Rich, RICH, None),
            (Payer::Poor, 0, None),
            (Payer::Narrow, RICH, Some(4)),
        ] {
            keys.insert(payer, new_key(&store, payer, balance, concurrency).await);
        }
        Self {
            store,
            keys,
            folder,
        }
    }

    /// Runs these calls on a new engine, until all of them have ended.
    pub(crate) async fn run(&self, plans: &[Arc<Plan>]) -> Wave {
        let actor = Actor::cli("test");
        let poor = self.keys[&Payer::Poor].wallet;
        let paid = self.store.top_up(poor, Micro::new(POOR), "", &actor).await;
        paid.unwrap();
        let script = Arc::new(Script::new(plans));
        let engine = self.engine(&script).await;
        let calls: Vec<(u64, JoinHandle<View>)> = plans
            .iter()
            .map(|plan| {
                let key = self.keys[&plan.payer].clone();
                let running = run_call(Arc::clone(&engine), key, Arc::clone(plan));
                (plan.number, tokio::spawn(running))
            })
            .collect();
        let seen = self.pass_time(async move {
            let mut seen = BTreeMap::new();
            for (number, running) in calls {
                seen.insert(number, running.await.unwrap());
            }
            seen
        });
        let seen = seen.await;
        self.pass_time(async move { engine.finish(Duration::from_secs(30)).await })
            .await;
        Wave { script, seen }
    }

    /// Advances the clock until the work is done, but no faster than the ledger answers.
    async fn pass_time<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let work = tokio::spawn(work);
        let key = self.keys[&Payer::Rich].key;
        while !work.is_finished() {
            for _ in 0..2 {
                for _ in 0..8 {
                    yield_now().await;
                }
                // When this returns, the writer has answered all earlier requests.
                self.store.balance(&key).await.unwrap();
            }
            tokio::time::advance(STEP).await;
        }
        work.await.unwrap()
    }

    async fn engine(&self, script: &Arc<Script>) -> Arc<Engine> {
        let timeouts = Timeouts {
            connect: Duration::from_secs(2),
            first_byte: Duration::from_secs(6),
            idle: Duration::from_secs(4),
            total: Duration::from_secs(20),
        };
        let mut channels = Vec::new();
        for name in ["up-0", "up-1", "up-2", "dead"] {
            let (channel, listener) = Channel::in_memory(channel_spec(name), timeouts).unwrap();
            if name != "dead" {
                tokio::spawn(serve(listener, Arc::clone(script)));
            }
            channels.push(channel);
        }
        let catalog = Catalog::on_channels(channels, models(), &self.store);
        let media = Media::open(&MediaSettings {
            place: MediaPlace::Folder(self.folder.path().join("media")),
            disk_floor_bytes: 0,
            ..MediaSettings::default()
        });
        let settings = Settings {
            output_reserve_tokens: 16,
            keep_alive: Duration::from_secs(2),
            client_gone_drain: Duration::from_secs(1),
            ..Settings::default()
        };
        let engine = Engine::new(self.store.clone(), media.unwrap(), settings);
        engine.set_catalog(catalog.await.unwrap());
        Arc::new(engine)
    }

    /// Checks that nothing is held any more, that each wallet has spent what its calls were charged, and that the
    /// ledger is consistent.
    pub(crate) async fn check_sums(&self) {
        for (payer, key) in &self.keys {
            let (wallet, key_state) = self.store.balance(&key.key).await.unwrap();
            let none = Micro::ZERO;
            assert_eq!((wallet.frozen, wallet.exposed), (none, none), "{payer:?}");
            assert_eq!((key_state.frozen, key_state.open_holds), (none, 0));
            let (mut paid, mut charged) = (0, 0);
            let mut after = None;
            loop {
                let page = self.store.entries(EntryQuery {
                    wallet: Some(key.wallet),
                    after,
                    ..EntryQuery::default()
                });
                let page = page.await.unwrap();
                let Some(last) = page.last() else {
                    break;
                };
                after = Some(last.cursor);
                for entry in &page {
                    match entry.kind {
                        // A top-up repays debt first.
                        EntryKind::TopUp => paid += entry.delta.balance - entry.delta.credit_used,
                        _ => charged += entry.charge.get(),
                    }
                }
            }
            let left = wallet.balance.get() - wallet.credit_used.get();
            assert_eq!(left, paid - charged, "{payer:?}");
            assert_eq!(key_state.usage.get(), charged, "{payer:?}");
        }
        let report = self.store.verify().await.unwrap();
        assert!(report.is_clean(), "{:#?}", report.differences);
    }
}

async fn new_key(store: &Store, payer: Payer, balance: i64, concurrency: Option<u32>) -> KeyHead {
    let actor = Actor::cli("test");
    let wallet = NewWallet {
        name: format!("{payer:?}"),
        balance: Micro::new(balance),
        gift: Micro::ZERO,
        credit_limit: Micro::ZERO,
    };
    let wallet = store.create_wallet(wallet, &actor).await.unwrap().id;
    let digest = Digest::of(format!("{payer:?}").as_bytes());
    let key = NewKey {
        wallet,
        name: None,
        digest,
        shown_prefix: "sk".to_owned(),
        limits: KeyLimits {
            concurrency,
            ..KeyLimits::default()
        },
        tags: Vec::new(),
    };
    store.create_key(key, &actor).await.unwrap();
    store.key_by_digest(&digest).await.unwrap().unwrap()
}

fn channel_spec(name: &str) -> ChannelSpec {
    ChannelSpec {
        name: name.to_owned(),
        preset: "sim".parse().unwrap(),
        base_url: Some(format!("http://{name}/v1")),
        credential: None,
        account: upstream::Account::default(),
        protocols: Some(vec![Protocol::Chat]),
        private_network: false,
        keeps_output_limit: None,
        client_gone_drain: None,
        counts_tokens: None,
        sends_traceparent: false,
    }
}

/// The models of `plan::MODELS`, and the fallback model of two of them.
fn models() -> Vec<ModelSpec> {
    let limited = Some(LIMIT_RPM);
    let mut models = vec![
        model_spec("m/1", &["up-0"], None, &[]),
        model_spec("m/2", &["dead", "up-0"], None, &[]),
        model_spec("m/3", &["up-0", "up-1", "up-2"], None, &[]),
        model_spec("m/limited", &["up-0", "up-1"], limited, &[]),
        model_spec("m/backed", &["up-0"], None, &["m/dear"]),
        model_spec("m/limited-backed", &["up-0"], limited, &["m/dear"]),
    ];
    let mut dear = model_spec("m/dear", &["up-1"], None, &[]);
    dear.price = serde_json::from_str(r#"{"input":"3","output":"7"}"#).unwrap();
    for route in &mut dear.routes {
        FALLBACK_MODEL.clone_into(&mut route.model);
    }
    models.push(dear);
    models
}

fn model_spec(id: &str, channels: &[&str], rpm: Option<u32>, fallbacks: &[&str]) -> ModelSpec {
    let price: PriceCard = serde_json::from_str(r#"{"input":"1","output":"2"}"#).unwrap();
    let route = |(place, channel): (usize, &&str)| RouteSpec {
        channel: (*channel).to_owned(),
        model: "up".to_owned(),
        priority: u32::try_from(place).unwrap(),
        weight: 1,
        dialect: None,
        limits: RouteLimits { rpm, tpm: None },
        cost: None,
    };
    ModelSpec {
        id: id.to_owned(),
        kind: Kind::Text,
        enabled: true,
        created: 0,
        routes: channels.iter().enumerate().map(route).collect(),
        routing: Routing {
            fallbacks: fallbacks.iter().map(|id| (*id).to_owned()).collect(),
            ..Routing::default()
        },
        price,
        profile: Profile::default(),
    }
}
