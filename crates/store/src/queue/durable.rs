//! Lets callers wait until a decision is on disk.
//!
//! Callers get a decision as soon as it is made, before the commit. With `SQLite`, the writer commits without a sync.
//! The sync thread syncs the log and then marks every batch that was committed before the sync began. With
//! `PostgreSQL`, a batch is durable as soon as its commit is answered. So a slow disk delays the confirmation, but
//! never the decision.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::command_queue::CommandQueue;
use super::waiters::{EndWait, Waiters};
use crate::error::NotDurable;
use crate::sync::{
    AtomicBool, AtomicU8, AtomicU64, Condvar, FaultPoint, Handle, Instant, Mutex, fault_point,
};

const UNDECIDED: u8 = 0;
const DURABLE: u8 = 1;
const LOST: u8 = 2;
const SEALED: u8 = 3;

/// Reports whether a decision survives a power cut, which is certain once [`wait`](Self::wait) has returned `Ok`.
#[derive(Clone)]
pub struct Durable {
    batch: Arc<Batch>,
}

impl Durable {
    /// Returns when the decision is on disk, or is lost for good.
    pub async fn wait(&self) -> Result<(), NotDurable> {
        loop {
            if let Some(outcome) = self.outcome_or_timeout().await {
                return outcome;
            }
        }
    }

    /// Whether the decision is on disk. False if the batch is still pending ten seconds after the first caller began to
    /// wait for it.
    pub async fn is_confirmed(&self) -> bool {
        self.outcome_or_timeout().await == Some(Ok(()))
    }

    /// The outcome of the batch, or `None` if it is not known in time.
    async fn outcome_or_timeout(&self) -> Option<Result<(), NotDurable>> {
        let waiters = match self.batch.join_waiters() {
            Ok(waiters) => waiters,
            Err(outcome) => return Some(outcome),
        };
        // Created before the state is read, so that no change in between is missed.
        let notified = waiters.notified();
        // The order matters: a batch is marked before its waiters are notified.
        let has_ended = waiters.has_ended();
        let outcome = self.batch.outcome();
        if has_ended || outcome.is_some() {
            return outcome;
        }
        if let Some(sync_queue) = &self.batch.sync_queue {
            sync_queue.request_sync(&self.batch);
        }
        notified.await;
        self.batch.outcome()
    }

    /// Whether a command that is sent now may still join the same batch, and so be committed or lost together with this
    /// decision.
    pub fn is_open(&self) -> bool {
        self.batch.state.load(Ordering::Acquire) == UNDECIDED
    }

    /// Whether a caller waits for this decision, or for one of a later batch. False with `PostgreSQL`, where no batch
    /// waits for a sync.
    pub(crate) fn is_awaited(&self) -> bool {
        let sync_queue = self.batch.sync_queue.as_ref();
        sync_queue.is_some_and(|it| it.is_awaited(&self.batch))
    }

    /// Whether the decision is already on disk.
    pub fn is_done(&self) -> bool {
        self.batch.state.load(Ordering::Acquire) == DURABLE
    }

    /// Whether the commit or the sync failed, so that the decision counts as lost.
    pub fn is_lost(&self) -> bool {
        self.batch.state.load(Ordering::Acquire) == LOST
    }
}

impl fmt::Debug for Durable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.batch.state.load(Ordering::Relaxed) {
            DURABLE => "durable",
            LOST => "lost",
            SEALED => "sealed",
            _ => "undecided",
        };
        write!(f, "Durable(batch {}, {state})", self.batch.number)
    }
}

/// One transaction of the writer.
pub(crate) struct Batch {
    number: u64,
    state: AtomicU8,
    waiters: Mutex<Vec<(Arc<Waiters>, EndWait)>>,
    /// The queue in which the batch waits for the sync. `None` if a commit is durable as soon as the database answers
    /// it.
    sync_queue: Option<Arc<SyncQueue>>,
}

impl Batch {
    /// A batch that is durable when the sync thread has synced it.
    pub(crate) fn synced_by(number: u64, sync_queue: &Arc<SyncQueue>) -> BatchGuard {
        Self::open(number, Some(Arc::clone(sync_queue)))
    }

    /// A batch that is durable as soon as its commit is answered.
    pub(crate) fn durable_on_commit(number: u64) -> BatchGuard {
        Self::open(number, None)
    }

    fn open(number: u64, sync_queue: Option<Arc<SyncQueue>>) -> BatchGuard {
        BatchGuard(Arc::new(Self {
            number,
            state: AtomicU8::new(UNDECIDED),
            waiters: Mutex::default(),
            sync_queue,
        }))
    }

    pub(crate) fn durable(self: &Arc<Self>) -> Durable {
        Durable {
            batch: Arc::clone(self),
        }
    }

    /// Accepts no more decisions, because the batch is being written.
    pub(crate) fn seal(&self) {
        self.state.store(SEALED, Ordering::Release);
    }

    pub(crate) fn mark_durable(&self) {
        self.mark(DURABLE);
    }

    /// Marks the batch as lost: its decisions were not committed, or will never be synced.
    pub(crate) fn mark_lost(&self) {
        self.mark(LOST);
    }

    /// The outcome of the batch. `None` until it is known.
    fn outcome(&self) -> Option<Result<(), NotDurable>> {
        match self.state.load(Ordering::Acquire) {
            DURABLE => Some(Ok(())),
            LOST => Some(Err(NotDurable)),
            _ => None,
        }
    }

    /// The waiters of the current runtime, or the outcome if it is already known.
    fn join_waiters(&self) -> Result<Arc<Waiters>, Result<(), NotDurable>> {
        let mut all = self.waiters.lock();
        // Read under the lock. If the batch is not marked yet, the thread that marks it will find these waiters.
        if let Some(outcome) = self.outcome() {
            return Err(outcome);
        }
        let runtime = Handle::current();
        if let Some((waiters, _)) = all.iter().find(|(it, _)| it.is_open_to(&runtime)) {
            return Ok(Arc::clone(waiters));
        }
        let (waiters, end) = Waiters::start(&runtime);
        all.push((Arc::clone(&waiters), end));
        Ok(waiters)
    }

    fn mark(&self, state: u8) {
        self.state.store(state, Ordering::Release);
        for (_, end) in self.waiters.lock().drain(..) {
            let _ = end.send(());
        }
    }
}

/// The handle of the thread that decides the outcome of a batch. If a panic drops it without an outcome, the batch is
/// marked as lost, so that no caller waits forever.
pub(crate) struct BatchGuard(Arc<Batch>);

impl Deref for BatchGuard {
    type Target = Arc<Batch>;

    fn deref(&self) -> &Arc<Batch> {
        &self.0
    }
}

impl Drop for BatchGuard {
    fn drop(&mut self) {
        if self.0.outcome().is_none() {
            self.0.mark_lost();
        }
    }
}

/// Committed batches that wait for the sync thread.
pub(crate) struct SyncQueue {
    state: Mutex<State>,
    wake: Condvar,
    /// The number of the latest batch that a caller waits for.
    awaited: AtomicU64,
    /// Whether the last sync took no longer than `quick_sync`.
    quick: AtomicBool,
    quick_sync: Duration,
    broken: AtomicBool,
    delay: Duration,
    /// Used to wake the writer.
    queue: Arc<CommandQueue>,
}

struct State {
    committed: Vec<Committed>,
    closed: bool,
    /// Whether the sync thread has ended.
    ended: bool,
    /// When the current sync began, for health checks.
    syncing_since: Option<Instant>,
}

struct Committed {
    batch: BatchGuard,
    wrote: bool,
    at: Instant,
}

impl SyncQueue {
    pub(crate) fn new(
        delay: Duration,
        quick_sync: Duration,
        queue: Arc<CommandQueue>,
    ) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                committed: Vec::new(),
                closed: false,
                ended: false,
                syncing_since: None,
            }),
            wake: Condvar::new(),
            awaited: AtomicU64::new(0),
            quick: AtomicBool::new(false),
            quick_sync,
            broken: AtomicBool::new(false),
            delay,
            queue,
        })
    }

    /// Adds a committed batch. A batch that wrote nothing still waits for the batches before it, because it
    /// may have read what they wrote.
    pub(crate) fn push(&self, batch: BatchGuard, wrote: bool) {
        let mut state = self.state.lock();
        if state.ended {
            // Dropping the guard marks the batch as lost.
            return;
        }
        let first = state.committed.is_empty();
        let is_awaited = self.is_awaited(&batch);
        state.committed.push(Committed {
            batch,
            wrote,
            at: Instant::now(),
        });
        drop(state);
        if first || is_awaited {
            self.wake.notify_one();
        }
    }

    /// Ends the sync thread once everything committed is synced.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.wake.notify_one();
    }

    /// Whether a sync has failed. The contents of the disk are then unknown, and another sync could succeed although
    /// the kernel has already dropped the unwritten pages. So no batch becomes durable until the process restarts.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    /// How long the current sync has taken so far.
    pub(crate) fn stalled_for(&self) -> Duration {
        self.state
            .lock()
            .syncing_since
            .map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Whether a caller waits for this batch or a later one.
    pub(crate) fn is_awaited(&self, batch: &Batch) -> bool {
        self.awaited.load(Ordering::Relaxed) >= batch.number
    }

    pub(crate) fn is_quick(&self) -> bool {
        self.quick.load(Ordering::Relaxed)
    }

    fn request_sync(&self, batch: &Batch) {
        // Only the first waiter of a batch needs to wake the threads.
        if self.awaited.fetch_max(batch.number, Ordering::Relaxed) >= batch.number {
            return;
        }
        if batch.state.load(Ordering::Acquire) == UNDECIDED {
            // The batch is still open, so the writer must write it first.
            self.queue.request_batch();
        }
        // The writer may have pushed the batch by now. Taking the lock ensures that the sync thread is either asleep or
        // has yet to check, and that a later push sees that the batch is awaited.
        drop(self.state.lock());
        self.wake.notify_one();
    }

    /// Runs the sync thread. `sync` flushes the log to disk.
    pub(crate) fn run(&self, mut sync: impl FnMut() -> std::io::Result<()>) {
        let _guard = SyncThreadGuard(self);
        while let Some(group) = self.next_group() {
            if group.iter().any(|committed| committed.wrote)
                && !self.is_broken()
                && let Err(error) = self.timed(&mut sync)
            {
                tracing::error!(%error, "the ledger could not be synced; admission stops until a restart");
                self.broken.store(true, Ordering::Relaxed);
            }
            let state = if self.is_broken() { LOST } else { DURABLE };
            for committed in &group {
                committed.batch.mark(state);
            }
        }
    }

    fn timed(&self, sync: impl FnOnce() -> std::io::Result<()>) -> std::io::Result<()> {
        fault_point(FaultPoint::Syncing);
        let begun = Instant::now();
        let synced = sync();
        self.quick
            .store(begun.elapsed() <= self.quick_sync, Ordering::Relaxed);
        synced
    }

    /// Waits until there are batches to sync and either a caller waits for one of them or the delay is over.
    fn next_group(&self) -> Option<Vec<Committed>> {
        let mut state = self.state.lock();
        state.syncing_since = None;
        loop {
            let Some(first) = state.committed.first() else {
                if state.closed {
                    return None;
                }
                self.wake.wait(&mut state);
                continue;
            };
            let due = first.at + self.delay;
            let is_awaited = self.is_awaited(&first.batch);
            if state.closed || is_awaited || Instant::now() >= due {
                state.syncing_since = Some(Instant::now());
                return Some(std::mem::take(&mut state.committed));
            }
            self.wake.wait_until(&mut state, due);
        }
    }
}

/// Marks the sync thread as ended when dropped, even by a panic. After that no batch becomes durable and no caller
/// keeps waiting.
struct SyncThreadGuard<'a>(&'a SyncQueue);

impl Drop for SyncThreadGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.ended = true;
        if !state.closed {
            self.0.broken.store(true, Ordering::Relaxed);
        }
        let left = std::mem::take(&mut state.committed);
        drop(state);
        drop(left);
    }
}

#[cfg(test)]
#[cfg(not(feature = "schedules"))]
mod tests;
