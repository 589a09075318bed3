//! Connects the parts, and implements the operations of [`Store`](crate::Store) on them.

use std::fmt;
use std::hash::{BuildHasher as _, BuildHasherDefault};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::{Notify, oneshot};
use tokio::task::LocalSet;

use super::journal;
use super::journal::Journal;
use super::reads::{accounts as lookups, entries, verify};
use super::tasks::{self, TASK_CONNECTIONS, Tasks};
use crate::books::Limits;
use crate::cache::IdHasher;
use crate::chain::WalletHead;
use crate::error::{AdmitError, OpenError, StoreError};
use crate::postgres::connection::connect::{Role, Target};
use crate::postgres::connection::ledger_connection::LedgerConnection;
use crate::postgres::connection::open::{for_command, for_node, ledger_role};
use crate::postgres::node::health::Health;
use crate::postgres::node::lease::{self, Node};
use crate::postgres::node::sweeper::Sweeper;
use crate::postgres::reads::pool::Reads;
use crate::postgres::writer::key_wallets::KeyWallets;
use crate::postgres::writer::lane::Lane;
use crate::postgres::writer::worker::Worker;
use crate::queue::command::{Change, Command};
use crate::queue::command_queue::{Bounds, CommandQueue, PushError};
use crate::records::accounts::{KeyHead, KeyRow, WalletRow};
use crate::records::entries::{EntryQuery, EntryRow, PriceRow};
use crate::records::ids::{Digest, HoldId, KeyId, WalletId};
use crate::records::journal::{JournalEntry, JournalQuery, JournalRow};
use crate::records::task::TaskView;
use crate::records::task_id::TaskId;
use crate::records::task_list::{TaskPage, TaskQuery};
use crate::settings::{Server, Settings};
use crate::stats::{Counters, Stats};
use crate::store::Recovery;
use crate::ticker::Ticker;
use crate::verify::VerifyReport;

/// If a lane or the database has not answered for this long, the store is unhealthy.
const HEALTHY_WITHIN: Duration = Duration::from_secs(2);
/// How often commands that have waited too long are looked for.
const EXPIRE_EVERY: Duration = Duration::from_millis(50);
/// The books of a lane hold the rows of one batch.
const BATCH_ROWS: usize = 1_024;
/// On shutdown, how long to wait for the journal, and then for the release of the lease.
const SHUTDOWN_STEP_MAX: Duration = Duration::from_secs(2);

pub(crate) struct Postgres {
    target: Arc<Target>,
    lanes: Vec<Arc<CommandQueue>>,
    counters: Arc<Counters>,
    health: Arc<Health>,
    node: Arc<Node>,
    key_wallets: KeyWallets,
    reads: Reads,
    tasks: Tasks,
    journal: Option<Arc<Journal>>,
    ledger: Option<JoinHandle<()>>,
    background: Option<BackgroundThread>,
    _expiry: Ticker,
}

/// Runs everything that must not delay the ledger.
struct BackgroundThread {
    thread: JoinHandle<()>,
    runtime: tokio::runtime::Handle,
    stop: Arc<Notify>,
}

impl Postgres {
    pub(crate) fn open(
        server: &Server,
        settings: &Settings,
    ) -> Result<(Self, Recovery), OpenError> {
        let target = Arc::new(Target::of(server)?);
        let counters = Arc::new(Counters::default());
        let background = BackgroundThread::start(&target)?;
        let opened = {
            let (target, server) = (Arc::clone(&target), server.clone());
            let (settings, counters) = (settings.clone(), Arc::clone(&counters));
            background
                .block_on(async move { for_node(&target, &server, &settings, &counters).await })?
        };
        let recovery = Recovery {
            epoch: opened.node.epoch(),
            abandoned: opened.swept.holds,
            held: opened.swept.held,
        };
        let node = opened.node;
        let journal = Journal::new(
            &counters,
            settings.journal_bounds(),
            settings.journal_retention_days,
        );
        background.runtime.spawn(lease::keep_lease(
            Arc::clone(&node),
            Arc::clone(&target),
            opened.keeper,
        ));
        let sweeper = Sweeper::new(&target, ledger_role(server, settings), &counters);
        background.runtime.spawn(sweeper.run(Arc::clone(&node)));
        let written = journal::write(Arc::clone(&journal), Arc::clone(&target), Arc::clone(&node));
        background.runtime.spawn(written);
        let store = Self::start(
            server,
            settings,
            target,
            counters,
            node,
            Some(journal),
            background,
        )?;
        Ok((store, recovery))
    }

    pub(crate) fn attach(server: &Server, settings: &Settings) -> Result<Self, OpenError> {
        let target = Arc::new(Target::of(server)?);
        let background = BackgroundThread::start(&target)?;
        {
            let (target, settings) = (Arc::clone(&target), settings.clone());
            background.block_on(async move { for_command(&target, &settings).await })?;
        }
        // A command makes one change and waits for it, so there is nothing to gather.
        let settings = Settings {
            gather: Duration::ZERO,
            ..settings.clone()
        };
        let server = Server {
            lanes: 1,
            ..server.clone()
        };
        let (counters, node) = (Arc::default(), Arc::new(Node::nobody()));
        Self::start(&server, &settings, target, counters, node, None, background)
    }

    fn start(
        server: &Server,
        settings: &Settings,
        target: Arc<Target>,
        counters: Arc<Counters>,
        node: Arc<Node>,
        journal: Option<Arc<Journal>>,
        background: BackgroundThread,
    ) -> Result<Self, OpenError> {
        let count = server.lanes.clamp(1, HoldId::LANES_MAX - TASK_CONNECTIONS);
        let bounds = Bounds {
            gather: settings.gather,
            waiting_max: settings.queue_max.div_ceil(count),
            call_wait_max: settings.queue_wait_max,
            change_wait_max: settings.lock_wait_max,
        };
        let lanes: Vec<Arc<CommandQueue>> = (0..count)
            .map(|_| Arc::new(CommandQueue::for_task(bounds)))
            .collect();
        let io = |source: std::io::Error| OpenError::Server {
            place: target.place().to_owned(),
            reason: source.to_string(),
        };
        let expiry = Ticker::start("store-expiry", EXPIRE_EVERY, {
            let lanes = lanes.clone();
            move || lanes.iter().for_each(|lane| lane.expire())
        });
        let expiry = expiry.map_err(io)?;
        let health = Arc::new(Health::default());
        let ledger = Ledger {
            target: Arc::clone(&target),
            health: Arc::clone(&health),
            role: ledger_role(server, settings),
            lanes: lanes.clone(),
            node: Arc::clone(&node),
            counters: Arc::clone(&counters),
            settings: settings.clone(),
        };
        let runtime = runtime().map_err(io)?;
        let thread = std::thread::Builder::new()
            .name("store-write".to_owned())
            .spawn(move || ledger.run(&runtime));
        let reads = Reads::new(&target, background.runtime.clone());
        if node.is_serving() {
            reads.watch(&health);
        }
        let tasks = Tasks::new(
            &target,
            ledger_role(server, settings),
            background.runtime.clone(),
            &node,
            settings.debt_limit,
            &counters,
        );
        Ok(Self {
            ledger: Some(thread.map_err(io)?),
            target,
            lanes,
            counters,
            health,
            node,
            key_wallets: KeyWallets::new(),
            reads,
            tasks,
            journal,
            background: Some(background),
            _expiry: expiry,
        })
    }

    /// Queues a command in the lane of its wallet.
    pub(crate) async fn push(&self, command: Command) -> Result<(), PushError> {
        let command = match command {
            Command::Task(task) => return self.tasks.take(task),
            other => other,
        };
        let wallet = match &command {
            Command::Admit(admit, _) => Some(admit.wallet),
            Command::Extend(extend, _) => return self.lane(extend.hold.lane()).push(command),
            Command::Step(stepping, _) => return self.lane(stepping.hold.lane()).push(command),
            Command::Close(closing) => return self.lane(closing.hold.lane()).push(command),
            Command::Uncount(hold) => return self.lane(hold.lane()).push(command),
            Command::Balance(key, _) => self.wallet_of(*key).await?,
            Command::Change(change) => match change {
                Change::CreateWallet { id, .. } => Some(*id),
                Change::Wallet { wallet, .. } => Some(*wallet),
                Change::CreateKey { new, .. } => Some(new.wallet),
                Change::Key { key, .. } => self.wallet_of(*key).await?,
                Change::PriceVersion { .. } => None,
            },
            Command::Task(_) | Command::Flush(_) => None,
        };
        let lane = wallet.map_or(0, |wallet| self.lane_of(wallet));
        self.lane(lane).push(command)
    }

    pub(crate) fn push_close(&self, command: Command) {
        let lane = match &command {
            Command::Close(closing) => closing.hold.lane(),
            Command::Uncount(hold) => hold.lane(),
            _ => 0,
        };
        self.lane(lane).push_close(command);
    }

    fn lane_of(&self, wallet: WalletId) -> usize {
        let hash = BuildHasherDefault::<IdHasher>::default().hash_one(wallet);
        usize::try_from(hash >> 32).unwrap_or(0) % self.lanes.len()
    }

    #[expect(clippy::indexing_slicing, reason = "there is at least one lane")]
    fn lane(&self, number: usize) -> &CommandQueue {
        &self.lanes[number % self.lanes.len()]
    }

    /// The wallet of a key. `None` if there is no such key.
    async fn wallet_of(&self, key: KeyId) -> Result<Option<WalletId>, PushError> {
        if let Some(wallet) = self.key_wallets.wallet_of(key) {
            return Ok(Some(wallet));
        }
        let found = self.find_key(key).await.map_err(|error| {
            tracing::warn!(%error, "the wallet of a key could not be looked up");
            PushError::Closed
        })?;
        Ok(found.map(|row| row.wallet))
    }

    /// Returns when everything queued so far is durable.
    pub(crate) async fn flush(&self) -> Result<(), StoreError> {
        let mut answers = Vec::new();
        for lane in &self.lanes {
            let (reply, answer) = oneshot::channel();
            lane.push(Command::Flush(reply))?;
            answers.push(answer);
        }
        for answer in answers {
            let durable = answer.await.map_err(|_| StoreError::Unavailable)?;
            durable.wait().await.map_err(|_| StoreError::Unavailable)?;
        }
        if let Some(journal) = &self.journal {
            journal.flush().await;
        }
        Ok(())
    }

    /// Whether an admission has any chance.
    pub(crate) fn may_admit(&self) -> Result<(), AdmitError> {
        if self.journal.is_none() || !self.node.is_leased() || self.counters.failing.get() {
            return Err(AdmitError::Unavailable);
        }
        Ok(())
    }

    pub(crate) fn healthy(&self) -> bool {
        self.health.is_whole()
            && (self.journal.is_none() || self.node.is_leased())
            && self
                .lanes
                .iter()
                .all(|lane| !lane.is_closed() && lane.oldest() < HEALTHY_WITHIN)
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn stats(&self) -> Stats {
        Stats {
            queue_depth: self.lanes.iter().map(|lane| lane.depth() as u64).sum(),
            journal_queue: self
                .journal
                .as_ref()
                .map_or(0, |journal| journal.queued() as u64),
            ..self.counters.read()
        }
    }

    pub(crate) async fn key_by_digest(
        &self,
        digest: Digest,
    ) -> Result<Option<KeyHead>, StoreError> {
        let found = self
            .reads
            .look_up(move |on| lookups::key_by_digest(on, digest))
            .await?;
        if let Some(head) = &found {
            self.key_wallets.insert(head.key, head.wallet);
        }
        Ok(found)
    }

    pub(crate) async fn wallets(&self) -> Result<Vec<WalletRow>, StoreError> {
        self.reads.search(lookups::wallets).await
    }

    pub(crate) async fn find_wallet(
        &self,
        name_or_id: String,
    ) -> Result<Option<WalletRow>, StoreError> {
        self.reads
            .look_up(move |on| lookups::find_wallet(on, name_or_id.clone()))
            .await
    }

    pub(crate) async fn keys(&self, wallet: Option<WalletId>) -> Result<Vec<KeyRow>, StoreError> {
        self.reads.search(move |on| lookups::keys(on, wallet)).await
    }

    pub(crate) async fn find_key(&self, key: KeyId) -> Result<Option<KeyRow>, StoreError> {
        let found = self
            .reads
            .look_up(move |on| lookups::find_key(on, key))
            .await?;
        if let Some(row) = &found {
            self.key_wallets.insert(row.id, row.wallet);
        }
        Ok(found)
    }

    pub(crate) async fn entries(&self, query: EntryQuery) -> Result<Vec<EntryRow>, StoreError> {
        self.reads
            .search(move |on| entries::entries(on, query.clone()))
            .await
    }

    pub(crate) async fn find_task(
        &self,
        wallet: WalletId,
        task: TaskId,
    ) -> Result<Option<TaskView>, StoreError> {
        self.reads
            .look_up(move |on| tasks::find(on, wallet, task))
            .await
    }

    pub(crate) async fn tasks(&self, query: TaskQuery) -> Result<TaskPage, StoreError> {
        self.reads
            .search(move |on| tasks::list(on, query.clone()))
            .await
    }

    pub(crate) async fn task_channels(&self) -> Result<Vec<(Box<str>, u64)>, StoreError> {
        self.reads.search(tasks::channels).await
    }

    pub(crate) async fn prices(&self) -> Result<Vec<PriceRow>, StoreError> {
        self.reads.search(entries::prices).await
    }

    /// Uses its own thread and connection, because it reads everything and must not delay anybody.
    pub(crate) async fn verify(&self, noted: Vec<WalletHead>) -> Result<VerifyReport, StoreError> {
        let target = Arc::clone(&self.target);
        let lease = self.node.lease().max(Server::at("").lease);
        let lease = i64::try_from(lease.as_millis()).unwrap_or(i64::MAX);
        let runtime = runtime().map_err(|_| StoreError::Unavailable)?;
        let (reply, answer) = oneshot::channel();
        let thread = std::thread::Builder::new().name("store-verify".to_owned());
        let spawned = thread.spawn(move || {
            let verified: Result<_, StoreError> = runtime.block_on(async {
                let mut client = target.connect(Role::Verify).await?;
                Ok(verify::verify(&mut client, lease, &noted).await?)
            });
            drop(reply.send(verified));
        });
        spawned.map_err(|_| StoreError::Unavailable)?;
        answer.await.map_err(|_| StoreError::Unavailable)?
    }

    pub(crate) fn journal_append(&self, row: JournalRow) {
        match &self.journal {
            Some(journal) => journal.append(row),
            None => self.counters.journal_dropped.add(1),
        }
    }

    pub(crate) async fn journal(
        &self,
        query: JournalQuery,
    ) -> Result<Vec<JournalEntry>, StoreError> {
        self.reads
            .search(move |on| journal::find(on, query.clone()))
            .await
    }
}

/// What the ledger's thread needs.
struct Ledger {
    target: Arc<Target>,
    health: Arc<Health>,
    role: Role,
    lanes: Vec<Arc<CommandQueue>>,
    node: Arc<Node>,
    counters: Arc<Counters>,
    settings: Settings,
}

impl Ledger {
    /// Runs the lanes until their queues are closed and empty.
    fn run(self, runtime: &Runtime) {
        let _end = LedgerGuard(self.lanes.clone());
        let tasks = LocalSet::new();
        tasks.block_on(runtime, async {
            let mut running = Vec::new();
            for (number, queue) in self.lanes.iter().enumerate() {
                let lane = Lane::new(
                    number,
                    Arc::clone(queue),
                    Arc::clone(&self.node),
                    Arc::clone(&self.counters),
                    Arc::clone(&self.health),
                    &self.settings,
                );
                let worker = || {
                    let connection = LedgerConnection::new(Arc::clone(&self.target), self.role);
                    let limits = Limits {
                        cached_rows_max: BATCH_ROWS,
                        ..self.settings.book_limits()
                    };
                    Worker::new(&lane, connection, limits)
                };
                let (main, patient) = (worker(), worker());
                let waiting = tokio::task::spawn_local(Rc::clone(&lane).wait_for_locks(patient));
                let working = tokio::task::spawn_local(lane.run(main));
                running.push((working, waiting));
            }
            for (working, waiting) in running {
                if working.await.is_err() {
                    tracing::error!("a lane of the ledger panicked");
                }
                waiting.abort();
            }
        });
    }
}

/// However the ledger's thread ends, nobody must wait for it any longer.
struct LedgerGuard(Vec<Arc<CommandQueue>>);

impl Drop for LedgerGuard {
    fn drop(&mut self) {
        for lane in &self.0 {
            lane.abandon();
        }
    }
}

impl BackgroundThread {
    fn start(target: &Target) -> Result<Self, OpenError> {
        let io = |source: std::io::Error| OpenError::Server {
            place: target.place().to_owned(),
            reason: source.to_string(),
        };
        let runtime = runtime().map_err(io)?;
        let handle = runtime.handle().clone();
        let stop = Arc::new(Notify::new());
        let thread = std::thread::Builder::new()
            .name("store-side".to_owned())
            .spawn({
                let stop = Arc::clone(&stop);
                move || runtime.block_on(stop.notified())
            });
        Ok(Self {
            thread: thread.map_err(io)?,
            runtime: handle,
            stop,
        })
    }

    /// Runs a task on the thread and waits for it here.
    fn block_on<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> T {
        let (reply, answer) = std::sync::mpsc::channel();
        self.runtime.spawn(async move {
            // The caller is waiting, so the channel is open.
            drop(reply.send(task.await));
        });
        answer
            .recv()
            .expect("the thread lives as long as this, and a task that panics says so itself")
    }
}

fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

impl Drop for Postgres {
    fn drop(&mut self) {
        for lane in &self.lanes {
            lane.close();
        }
        if let Some(thread) = self.ledger.take()
            && thread.join().is_err()
        {
            tracing::error!("the ledger's thread panicked");
        }
        let Some(background) = self.background.take() else {
            return;
        };
        if let Some(journal) = self.journal.take() {
            let (target, node) = (Arc::clone(&self.target), Arc::clone(&self.node));
            background.block_on(async move {
                if tokio::time::timeout(SHUTDOWN_STEP_MAX, journal.flush())
                    .await
                    .is_err()
                {
                    let rows = journal.queued();
                    tracing::error!(
                        rows,
                        "journal rows are lost: the database does not take them"
                    );
                }
                journal.close();
                let give_back = async {
                    let client = target.connect(Role::Node).await?;
                    lease::give_back(&node, &client).await
                };
                match tokio::time::timeout(SHUTDOWN_STEP_MAX, give_back).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) | Err(_) => {
                        tracing::warn!(
                            "the node's lease could not be given back; it ends by itself"
                        );
                    }
                }
            });
        }
        background.stop.notify_one();
        if background.thread.join().is_err() {
            tracing::error!("a thread of the store panicked");
        }
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres")
            .field("place", &self.target.place())
            .field("lanes", &self.lanes.len())
            .finish_non_exhaustive()
    }
}
