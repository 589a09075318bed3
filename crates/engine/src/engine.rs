//! The engine of one node: the state that all calls share.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use protocol::Failure;
use store::{Backlog, JournalRow, Media, Store};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use upstream::Guarded;

use crate::call::record::EndedCall;
use crate::call::retry_budget::RetryBudget;
use crate::call::shutdown::Shutdown;
use crate::caller_urls::CallerUrls;
use crate::callers::keyring::Keyring;
use crate::callers::limits::Callers;
use crate::catalog::Catalog;
use crate::failures::try_again_soon;
use crate::media::{COPIES_MAX, MediaReads, StorageWatch};
use crate::memory_budget::MemoryBudget;
use crate::metrics::registry::Metrics;
use crate::settings::Settings;
use crate::task::ListTurns;
use crate::telemetry::{FinishedCall, Telemetry, TraceContext, Traceparent};

/// The memory for bodies divided by this is reserved for small bodies.
const KEPT_FOR_SMALL_BODIES: usize = 8;

/// The engine of one node.
#[derive(Debug)]
pub struct Engine {
    pub(crate) store: Store,
    pub(crate) media: Media,
    /// Permits to copy media. They limit the number of concurrent copies.
    pub(crate) copies: Semaphore,
    pub(crate) media_reads: Arc<MediaReads>,
    pub(crate) storage_watch: StorageWatch,
    pub(crate) task_lists: ListTurns,
    /// Our own address. It is used if the settings do not define a public URL.
    address_url: OnceLock<String>,
    pub(crate) settings: Settings,
    pub(crate) retries: RetryBudget,
    pub(crate) tasks: TaskTracker,
    pub(crate) shutdown: Shutdown,
    /// Cancelled when the node waits for its last tasks. Background work that another node can repeat then gives up.
    pub(crate) stopping: CancellationToken,
    catalog: ArcSwap<Catalog>,
    pub(crate) keyring: Arc<Keyring>,
    /// The memory for bodies, without the part that is reserved for small ones.
    budget: MemoryBudget,
    /// The part of `budget` that is available for answers about tasks.
    pub(crate) task_budget: MemoryBudget,
    pub(crate) guarded: Arc<Guarded>,
    pub(crate) caller_urls: CallerUrls,
    pub(crate) metrics: Metrics,
    /// The backlog in the database when it was last read for the metrics.
    pub(crate) backlog: Mutex<Backlog>,
    /// `None` if there is no collector.
    pub(crate) telemetry: Option<Telemetry>,
    in_flight: Arc<AtomicUsize>,
    pub(crate) started: Instant,
}

impl Engine {
    /// Creates an engine with an empty catalog.
    pub fn new(store: Store, media: Media, settings: Settings) -> Self {
        let small_bodies = MemoryBudget::new(settings.bodies_bytes_max);
        let kept = settings.bodies_bytes_max / KEPT_FOR_SMALL_BODIES;
        let budget = small_bodies.part(settings.bodies_bytes_max - kept);
        let callers = Callers::new(settings.callers, small_bodies, budget.clone());
        let guarded = Arc::new(Guarded::new(settings.outbound.clone()));
        let keyring = Arc::new(Keyring::new(callers));
        let changed = Arc::clone(&keyring);
        store.on_key_change(move |key| changed.forget(key));
        let metrics = Metrics::with_wallets(settings.telemetry.wallet_series);
        let telemetry = Telemetry::new(&settings.telemetry, metrics.telemetry.clone());
        let telemetry = telemetry.unwrap_or_else(|error| {
            tracing::error!(%error, "telemetry is off, because its address cannot be used");
            None
        });
        Self {
            store,
            media,
            copies: Semaphore::new(COPIES_MAX),
            media_reads: Arc::default(),
            storage_watch: StorageWatch::default(),
            task_lists: ListTurns::default(),
            address_url: OnceLock::new(),
            retries: RetryBudget::full(),
            tasks: TaskTracker::new(),
            shutdown: Shutdown::default(),
            stopping: CancellationToken::new(),
            catalog: ArcSwap::default(),
            keyring,
            caller_urls: CallerUrls::new(&guarded, settings.pictures),
            // Answers about tasks always leave room for requests of callers.
            task_budget: budget.part(settings.bodies_bytes_max / 2),
            budget,
            guarded,
            metrics,
            backlog: Mutex::default(),
            telemetry,
            in_flight: Arc::default(),
            started: Instant::now(),
            settings,
        }
    }

    /// The current catalog. A call loads it once.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// Replaces the catalog. Running calls keep the old one.
    pub fn set_catalog(&self, catalog: Catalog) {
        self.catalog.store(Arc::new(catalog));
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The storage of generated media.
    pub fn media(&self) -> &Media {
        &self.media
    }

    /// Sets our own address, which is used if the settings do not define a public URL. Only the first call has an
    /// effect.
    pub fn set_address_url(&self, url: String) {
        let _ = self.address_url.set(url);
    }

    /// The base of the URLs that we give to clients.
    pub fn public_url(&self) -> &str {
        match &*self.settings.tasks.public_url {
            "" => self.address_url.get().map_or("", String::as_str),
            url => url,
        }
    }

    /// The client for URLs that clients and upstreams name.
    pub fn guarded(&self) -> &Guarded {
        &self.guarded
    }

    /// The memory for large bodies, answers and events.
    pub fn budget(&self) -> &MemoryBudget {
        &self.budget
    }

    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    pub(crate) fn callers(&self) -> &Callers {
        self.keyring.callers()
    }

    /// Takes one of the node's call slots. If there is none left, the call is refused before anything is read.
    pub fn enter(&self) -> Result<CallSlot, Failure> {
        let place = CallSlot(Arc::clone(&self.in_flight));
        if place.0.fetch_add(1, Ordering::Relaxed) >= self.settings.in_flight_max {
            return Err(try_again_soon("This node serves as many calls as it may."));
        }
        Ok(place)
    }

    /// Ends all open streams and sessions with an error of their protocol, because the node is stopping and has waited
    /// long enough.
    pub fn end_streams(&self) {
        self.shutdown.begin();
    }

    /// Waits until all background tasks have ended, such as calls that outlive their callers, and then flushes the
    /// ledger. After `within`, tells the remaining tasks to end.
    pub async fn finish(&self, within: Duration) {
        self.stopping.cancel();
        self.tasks.close();
        // A creation that answers only with its result may take half an hour.
        if timeout(within, self.tasks.wait()).await.is_err() {
            self.end_streams();
            self.tasks.wait().await;
        }
        if let Err(error) = self.store.flush().await {
            tracing::error!(%error, "the ledger could not be flushed; open holds are closed at the next start");
        }
    }

    /// Begins the trace of a call, if the call is traced. `parent` is the span of a caller that the operator trusts.
    pub fn begin_trace(&self, parent: Option<&Traceparent>) -> Option<Box<TraceContext>> {
        let telemetry = self.telemetry.as_ref()?;
        telemetry.begin(parent).map(Box::new)
    }

    /// Journals and counts a call that is over.
    pub(crate) fn journal(&self, ended: EndedCall) {
        let EndedCall { row, trace } = ended;
        // A hold or a channel proves that the model exists.
        let is_known = row.hold.is_some()
            || row.channel.is_some()
            || self.catalog.load().get(&row.model).is_some();
        self.metrics.call_ended(&row, is_known);
        if let (Some(trace), Some(telemetry)) = (trace, &self.telemetry) {
            telemetry.push(FinishedCall::new(trace, &row));
        }
        self.store.journal_append(row);
    }
}

impl Engine {
    /// Counts the charge of a call that was journaled before its charge was known.
    pub(crate) fn journal_late_charge(&self, late: JournalRow) {
        self.metrics.charged_late(&late);
        self.store.journal_append(late);
    }
}

/// One of the node's slots for calls in flight. Dropping it frees the slot.
#[derive(Debug)]
pub struct CallSlot(Arc<AtomicUsize>);

impl Drop for CallSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
