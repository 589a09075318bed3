//! Opens a store on a `PostgreSQL` database, and starts and stops its threads. `operations.rs` and `statement_reads.rs`
//! implement the operations of [`Store`](crate::Store).

use std::fmt;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use super::background::{BackgroundThread, StoreThreads, runtime};
use super::journal;
use super::journal::Journal;
use super::tasks::{TASK_CONNECTIONS, Tasks};
use super::writer::thread::LedgerThread;
use crate::error::OpenError;
use crate::postgres::connection::connect::{Role, Target};
use crate::postgres::connection::open::{for_command, for_node, ledger_role};
use crate::postgres::node::health::Health;
use crate::postgres::node::lease::{self, Node};
use crate::postgres::node::sweeper::Sweeper;
use crate::postgres::reads::pool::Reads;
use crate::postgres::reads::searches::Searches;
use crate::postgres::writer::key_wallets::KeyWallets;
use crate::queue::command_queue::{Bounds, CommandQueue};
use crate::records::ids::HoldId;
use crate::records::recovery::Recovery;
use crate::settings::{COMMAND_SEARCH_MAX, Server, Settings};
use crate::stats::Counters;
use crate::ticker::Ticker;

/// The store is unhealthy if a command has waited in the queue of a lane for this time.
pub(super) const HEALTHY_WITHIN: Duration = Duration::from_secs(2);
/// The interval at which the queues are searched for commands that have waited too long.
const EXPIRE_EVERY: Duration = Duration::from_millis(50);
/// On shutdown, the maximum wait for the journal, and then for the release of the lease.
const SHUTDOWN_STEP_MAX: Duration = Duration::from_secs(2);

pub(crate) struct Postgres {
    pub(super) target: Arc<Target>,
    pub(super) lanes: Vec<Arc<CommandQueue>>,
    pub(super) counters: Arc<Counters>,
    pub(super) health: Arc<Health>,
    pub(super) node: Arc<Node>,
    pub(super) key_wallets: KeyWallets,
    pub(super) reads: Reads,
    pub(super) searches: Searches,
    pub(super) tasks: Tasks,
    pub(super) journal: Option<Arc<Journal>>,
    pub(super) ledger: Option<JoinHandle<()>>,
    pub(super) threads: Option<StoreThreads>,
    pub(super) _expiry: Ticker,
}

impl Postgres {
    pub(crate) fn open(
        server: &Server,
        settings: &Settings,
    ) -> Result<(Self, Recovery), OpenError> {
        let target = Arc::new(Target::of(server)?);
        let counters = Arc::new(Counters::default());
        let background = BackgroundThread::start("store-side", &target)?;
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
        let threads = StoreThreads {
            journal: BackgroundThread::start("store-journal", &target)?,
            side: background,
        };
        let written = journal::write(Arc::clone(&journal), Arc::clone(&target), Arc::clone(&node));
        threads.journal.runtime.spawn(written);
        let store = Self::start(
            server,
            settings,
            target,
            counters,
            node,
            Some(journal),
            threads,
        )?;
        Ok((store, recovery))
    }

    pub(crate) fn attach(server: &Server, settings: &Settings) -> Result<Self, OpenError> {
        let target = Arc::new(Target::of(server)?);
        let background = BackgroundThread::start("store-side", &target)?;
        {
            let (target, settings) = (Arc::clone(&target), settings.clone());
            background.block_on(async move { for_command(&target, &settings).await })?;
        }
        // A process of the command line makes one change and waits for it, so its batches need not wait for more
        // changes. Its searches delay only its own user, so they may take longer.
        let settings = Settings {
            gather: Duration::ZERO,
            search_max: COMMAND_SEARCH_MAX,
            ..settings.clone()
        };
        let server = Server {
            lanes: 1,
            ..server.clone()
        };
        let (counters, node) = (Arc::default(), Arc::new(Node::of_command()));
        let threads = StoreThreads {
            journal: BackgroundThread::start("store-journal", &target)?,
            side: background,
        };
        Self::start(&server, &settings, target, counters, node, None, threads)
    }

    fn start(
        server: &Server,
        settings: &Settings,
        target: Arc<Target>,
        counters: Arc<Counters>,
        node: Arc<Node>,
        journal: Option<Arc<Journal>>,
        threads: StoreThreads,
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
        let ledger = LedgerThread {
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
        let searches = Searches::new(
            &target,
            threads.journal.runtime.clone(),
            settings.search_max,
        );
        let reads = Reads::new(&target, threads.side.runtime.clone());
        if node.is_serving() {
            reads.watch(&health);
        }
        let tasks = Tasks::new(
            &target,
            ledger_role(server, settings),
            threads.side.runtime.clone(),
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
            searches,
            tasks,
            journal,
            threads: Some(threads),
            _expiry: expiry,
        })
    }
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
        let Some(threads) = self.threads.take() else {
            return;
        };
        if let Some(journal) = self.journal.take() {
            let (target, node) = (Arc::clone(&self.target), Arc::clone(&self.node));
            threads.side.block_on(async move {
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
                let release = async {
                    let client = target.connect(Role::Node).await?;
                    lease::release(&node, &client).await
                };
                match tokio::time::timeout(SHUTDOWN_STEP_MAX, release).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) | Err(_) => {
                        tracing::warn!("the node's lease could not be released; it ends by itself");
                    }
                }
            });
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
