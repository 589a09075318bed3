//! The parts a call needs, in one place.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use protocol::Failure;
use store::{JournalRow, KeyHead, Media, Store};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use upstream::{AddressPolicy, BreakerState, Guarded};

use crate::call::retry_budget::RetryBudget;
use crate::call::shutdown::Shutdown;
use crate::caller_urls::{CallerUrls, ImageFetchLimits};
use crate::callers::keyring::{KeyLookupError, Keyring, LastKey};
use crate::callers::limits::{Caller, CallerLimits, Callers};
use crate::catalog::Catalog;
use crate::clock;
use crate::media::{COPIES_MAX, MediaLimits, MediaReads, StorageWatch};
use crate::memory_budget::MemoryBudget;
use crate::metrics::registry::{Metrics, ScrapeValues};
use crate::session::SessionLimits;
use crate::task::TaskSettings;

/// One part in so many of the memory for bodies is kept for small ones.
const KEPT_FOR_SMALL_BODIES: usize = 8;

/// When the answer may leave, measured against the hold's commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commit {
    /// No byte of the answer leaves before the hold is on disk.
    BeforeAnswer,
    /// The commit runs behind: a power cut may forget the last milliseconds.
    Behind,
}

/// What operators can set about calls.
#[derive(Debug, Clone)]
pub struct Settings {
    pub commit: Commit,
    /// Output tokens that a hold covers at first, and by which a stream's hold grows.
    pub output_reserve_tokens: u64,
    /// Whether the journal keeps bodies, redacted.
    pub journal_bodies: bool,
    /// Whether a request that offers a built-in tool without a price is refused.
    pub refuse_unpriced_tools: bool,
    /// Whether realtime sessions are refused whose model has no price for text tokens.
    pub refuse_unpriced_text: bool,
    /// The largest buffered answer of an upstream.
    pub answer_bytes_max: usize,
    /// The largest answer with pictures or vectors.
    pub media_bytes_max: usize,
    /// Bodies in memory, whole node.
    pub bodies_bytes_max: usize,
    /// What one key and one wallet may take of the node.
    pub callers: CallerLimits,
    /// What is fetched for upstreams that take no URLs of images.
    pub pictures: ImageFetchLimits,
    /// How long sessions and their silences may be, and how large their messages.
    pub sockets: SessionLimits,
    /// Which addresses we call for others.
    pub outbound: AddressPolicy,
    /// How long an upstream is heard out for its usage after the caller left.
    pub client_gone_drain: Duration,
    /// Silence on a stream after which the caller gets a sign of life.
    pub keep_alive: Duration,
    /// Calls in flight on this node.
    pub in_flight_max: usize,
    /// How asynchronous work is followed.
    pub tasks: TaskSettings,
    /// What is copied of an upstream's media.
    pub media: MediaLimits,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            commit: Commit::BeforeAnswer,
            output_reserve_tokens: 4096,
            journal_bodies: false,
            refuse_unpriced_tools: false,
            refuse_unpriced_text: false,
            answer_bytes_max: 32 << 20,
            media_bytes_max: 100 << 20,
            bodies_bytes_max: 512 << 20,
            callers: CallerLimits::default(),
            pictures: ImageFetchLimits::default(),
            sockets: SessionLimits::default(),
            outbound: AddressPolicy::default(),
            client_gone_drain: Duration::from_secs(5),
            keep_alive: Duration::from_secs(15),
            in_flight_max: 10_000,
            tasks: TaskSettings::default(),
            media: MediaLimits::default(),
        }
    }
}

/// The engine of one node.
#[derive(Debug)]
pub struct Engine {
    pub(crate) store: Store,
    pub(crate) media: Media,
    /// Turns to copy media.
    pub(crate) copies: Semaphore,
    pub(crate) media_reads: Arc<MediaReads>,
    pub(crate) storage_watch: StorageWatch,
    /// Where callers reach us, when no setting says so.
    address_url: OnceLock<String>,
    pub(crate) settings: Settings,
    pub(crate) retries: RetryBudget,
    pub(crate) tasks: TaskTracker,
    pub(crate) shutdown: Shutdown,
    /// The node waits for its last work: what can be begun again elsewhere is given up.
    pub(crate) stopping: CancellationToken,
    catalog: ArcSwap<Catalog>,
    keyring: Keyring,
    /// Everything that is charged; small bodies may take all of it.
    small_bodies: MemoryBudget,
    /// All of it but the part that is kept for small bodies.
    budget: MemoryBudget,
    /// The part of it that answers about tasks may take.
    pub(crate) task_budget: MemoryBudget,
    pub(crate) guarded: Arc<Guarded>,
    pub(crate) caller_urls: CallerUrls,
    metrics: Metrics,
    in_flight: Arc<AtomicUsize>,
    started: Instant,
}

impl Engine {
    /// An engine with an empty catalog.
    pub fn new(store: Store, media: Media, settings: Settings) -> Self {
        let small_bodies = MemoryBudget::new(settings.bodies_bytes_max);
        let kept = settings.bodies_bytes_max / KEPT_FOR_SMALL_BODIES;
        let budget = small_bodies.part(settings.bodies_bytes_max - kept);
        let callers = Callers::new(settings.callers, budget.clone());
        let guarded = Arc::new(Guarded::new(settings.outbound.clone()));
        Self {
            store,
            media,
            copies: Semaphore::new(COPIES_MAX),
            media_reads: Arc::default(),
            storage_watch: StorageWatch::default(),
            address_url: OnceLock::new(),
            retries: RetryBudget::full(),
            tasks: TaskTracker::new(),
            shutdown: Shutdown::default(),
            stopping: CancellationToken::new(),
            catalog: ArcSwap::default(),
            keyring: Keyring::new(callers),
            caller_urls: CallerUrls::new(Arc::clone(&guarded), budget.clone(), settings.pictures),
            // However much upstreams send about tasks, callers find room for their requests.
            task_budget: budget.part(settings.bodies_bytes_max / 2),
            small_bodies,
            budget,
            guarded,
            metrics: Metrics::new(),
            in_flight: Arc::default(),
            started: Instant::now(),
            settings,
        }
    }

    /// The catalog of this moment; a call takes it once.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// Puts a new catalog in the place of the old one; calls under way keep theirs.
    pub fn set_catalog(&self, catalog: Catalog) {
        self.catalog.store(Arc::new(catalog));
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Media that are kept here.
    pub fn media(&self) -> &Media {
        &self.media
    }

    /// Says where callers reach us, which is needed when no setting says so. Only the first call counts.
    pub fn set_address_url(&self, url: String) {
        let _ = self.address_url.set(url);
    }

    /// The base of the addresses that we hand out.
    pub fn public_url(&self) -> &str {
        match &*self.settings.tasks.public_url {
            "" => self.address_url.get().map_or("", String::as_str),
            url => url,
        }
    }

    /// The client for addresses that others name.
    pub fn guarded(&self) -> &Guarded {
        &self.guarded
    }

    /// The memory that large bodies, answers and events may take.
    pub fn budget(&self) -> &MemoryBudget {
        &self.budget
    }

    /// The memory that small bodies may take: a part of it is theirs alone, so that they are served
    /// when large ones have taken the rest.
    pub fn small_bodies(&self) -> &MemoryBudget {
        &self.small_bodies
    }

    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Who holds this secret.
    pub async fn recognise(&self, secret: &str, last: &LastKey) -> Result<Caller, Failure> {
        let look_up = async |digest| self.store.key_by_digest(&digest).await;
        let found = self.keyring.find(look_up, secret, last).await;
        let (key, share) = found.map_err(|unrecognised| match unrecognised {
            KeyLookupError::NoSuchKey => Failure::invalid_api_key(),
            KeyLookupError::Unavailable => {
                Failure::unavailable("Keys cannot be looked up now.").retry_after(1)
            }
        })?;
        self.keyring.callers().enter(key, share)
    }

    /// The keys and wallets of this node.
    pub(crate) fn callers(&self) -> &Callers {
        self.keyring.callers()
    }

    /// Takes one of the node's places, or refuses before anything was read.
    pub fn enter(&self) -> Result<CallSlot, Failure> {
        let place = CallSlot(Arc::clone(&self.in_flight));
        if place.0.fetch_add(1, Ordering::Relaxed) >= self.settings.in_flight_max {
            return Err(
                Failure::unavailable("This node serves as many calls as it may.").retry_after(1),
            );
        }
        Ok(place)
    }

    /// The text for a scraper.
    pub fn scrape(&self) -> String {
        let values = ScrapeValues {
            stats: self.store.stats(),
            settled: self.store.settled(),
            uptime: self.started.elapsed(),
            channels: self.channel_states(),
        };
        self.metrics.render(&values)
    }

    /// Name and health of each channel.
    pub fn channel_states(&self) -> Vec<(String, &'static str)> {
        let spell = |state: BreakerState| match state {
            BreakerState::Closed => "closed",
            BreakerState::Probe => "probe",
            BreakerState::Open { .. } => "open",
            BreakerState::CredentialRefused { .. } => "taken_out",
        };
        let catalog = self.catalog.load();
        catalog
            .channels()
            .map(|channel| {
                (
                    channel.name().to_owned(),
                    spell(channel.state(Instant::now)),
                )
            })
            .collect()
    }

    /// A caller's wallet and key at one instant, after all its charges so far.
    pub async fn balance(&self, key: &KeyHead) -> Result<(ledger::Wallet, ledger::Key), Failure> {
        let (wallet, key) = self.store.balance(&key.key).await.map_err(|error| {
            tracing::warn!(%error, "a balance could not be read");
            Failure::unavailable("The balance cannot be read now.").retry_after(1)
        })?;
        // The ledger knows better than the keyring, which remembers keys for a while.
        if !key.enabled || key.is_expired(clock::now()) {
            return Err(Failure::invalid_api_key());
        }
        Ok((wallet, key))
    }

    /// Ends the streams that are still open with an error of their protocol: the node stops,
    /// and has waited for them long enough.
    pub fn end_streams(&self) {
        self.shutdown.begin();
    }

    /// Waits until calls that outlive their callers have ended and the ledger is on disk.
    pub async fn finish(&self) {
        self.stopping.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        if let Err(error) = self.store.flush().await {
            tracing::error!(%error, "the ledger could not be flushed; open holds are closed at the next start");
        }
    }

    pub(crate) fn journal(&self, row: JournalRow) {
        self.store.journal_append(row);
    }
}

/// One place among the node's calls in flight, given back when dropped.
#[derive(Debug)]
pub struct CallSlot(Arc<AtomicUsize>);

impl Drop for CallSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
