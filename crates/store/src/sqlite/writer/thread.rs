//! The writer thread: moves commands from the queue into one transaction after another.
//!
//! The transaction begins before the commands are taken. So while another process holds the lock, commands stay
//! in the queue, where they can expire. Decisions are answered at once. A batch stays open until somebody waits
//! for it or for a short time, during which callers decide their calls themselves (`shared_ledger`). A call
//! that ends within its batch leaves one entry and no hold. Under load, the next batch is opened without
//! waiting for a call, and is decided while the last one is written. When a transaction fails, the callers that
//! were admitted in it or since then are told, and its closes are kept and booked again for as long as the
//! process lives. Nobody is admitted until a commit succeeds. A call that was answered although its hold was
//! lost is charged by an entry of its own (`docs/decisions/025`).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use ledger::Micro;

use super::batch_policy::{BatchPolicy, GATHER_PAUSE};
use super::batch_writer::{BatchWriter, CacheState};
use super::disk_reserve::Ballast;
use super::ledger::Ledger;
use super::shared_ledger::{BatchCounts, SharedLedger};
use crate::queue::command::Command;
use crate::queue::command_queue::{BatchTiming, CommandQueue, Queued, Wake};
use crate::queue::durable::{Batch, BatchGuard, SyncQueue};
use crate::records::call::Close;
use crate::sqlite::connection::errors::FailureKind;
use crate::stats::Counters;
use crate::sync::{FaultPoint, Instant, Mutex, MutexGuard, fault_point, sleep};

/// The first pause after a failure. It doubles up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// How long a store that is being closed tries to book the remaining closes.
const LAST_TRIES: Duration = Duration::from_secs(5);

/// What the writer shares with the rest of the store.
#[derive(Clone)]
pub(crate) struct WriterContext {
    pub(crate) queue: Arc<CommandQueue>,
    pub(crate) sync_queue: Arc<SyncQueue>,
    pub(crate) shared_ledger: Arc<SharedLedger>,
    /// Held while a batch is written. The checkpointer takes it to have the log to itself, and counts its
    /// checkpoints in it.
    pub(crate) checkpoint_lock: Arc<Mutex<u64>>,
    pub(crate) ballast: Arc<Ballast>,
    pub(crate) gather: Duration,
}

pub(crate) struct Writer<'c> {
    pub(crate) ledger: Ledger<'c>,
    pub(crate) shared: WriterContext,
    batches: u64,
    /// Closes of failed transactions, in order.
    pub(crate) retry: VecDeque<Close>,
    /// Closes that fail even alone.
    pub(crate) stuck: Vec<Close>,
    pub(crate) stuck_due: Option<Instant>,
    failures: u32,
    /// Each command gets its own transaction, because one of the last commands made its transaction fail.
    pub(crate) one_by_one: bool,
    policy: BatchPolicy,
    drained: Vec<Queued>,
}

/// The batch that is being decided.
struct CurrentBatch {
    batch: BatchGuard,
    opened: Instant,
    /// The number of checkpoints when the batch began, or `None` if a checkpoint was running.
    checkpoints: Option<u64>,
    counts: BatchCounts,
    /// Closes that could not be decided.
    undecided: VecDeque<Close>,
    /// The writer had to decide a command itself.
    interrupted: bool,
}

/// Why the writer stops sharing the books.
enum Woken {
    /// Commands are queued.
    Queued,
    /// It is time to write the batch and release the lock.
    WriteDue,
    /// The batch that was taken from the books could not be written.
    WriteFailed(BatchGuard, usize, rusqlite::Error),
    /// The batch was written, but another program holds the lock now, or held it since.
    ForeignWrite(Option<rusqlite::Error>),
}

impl<'c> Writer<'c> {
    pub(crate) fn new(ledger: Ledger<'c>, shared: WriterContext) -> Self {
        let policy = BatchPolicy::new(shared.gather);
        Self {
            ledger,
            shared,
            batches: 0,
            retry: VecDeque::new(),
            stuck: Vec::new(),
            stuck_due: None,
            failures: 0,
            one_by_one: false,
            policy,
            drained: Vec::new(),
        }
    }

    /// Runs until the queue is closed and everything in it is booked.
    pub(crate) fn run(mut self) {
        let now = Instant::now();
        let mut timing = BatchTiming {
            not_before: now,
            enough: usize::MAX,
            linger_until: now,
            due: None,
            opens_ahead: false,
        };
        let mut last_commit = now;
        while self.shared.queue.wait(&timing) == Wake::Work {
            let started = Instant::now();
            let (batches, closed) = (
                self.ledger.books.counters.batches.get(),
                self.shared.queue.is_closed(),
            );
            self.run_batch();
            timing = self.timing();
            if !closed || self.ledger.books.counters.batches.get() > batches {
                last_commit = started;
            } else if last_commit.elapsed() > LAST_TRIES {
                break;
            }
        }
        self.report_unbooked();
    }

    /// Logs the closes that are not booked when the process ends.
    fn report_unbooked(&mut self) {
        self.decline_queued();
        let (retry, stuck) = (self.retry.drain(..), self.stuck.drain(..));
        for closing in retry.chain(stuck) {
            let (hold, charge) = (closing.hold, closing.charge().map(Micro::get));
            let request_id = self.ledger.lost.get(&hold).map(|hold| hold.request_id);
            tracing::error!(
                %hold,
                charge,
                request_id = request_id.as_deref(),
                "a call could not be closed in the ledger; the next start closes its hold as abandoned, if there is one"
            );
        }
    }

    /// Keeps the closes that are queued, and refuses the other commands.
    fn decline_queued(&mut self) {
        let mut drained = Vec::new();
        self.shared.queue.drain(&mut drained);
        self.keep(drained.into_iter().map(|queued| queued.command));
    }

    fn timing(&mut self) -> BatchTiming {
        let now = Instant::now();
        let pause = if self.failures > 0 {
            (PAUSE_MIN * 2_u32.saturating_pow(self.failures.min(10) - 1)).min(PAUSE_MAX)
        } else {
            self.policy.lock_pause(now)
        };
        let not_before = now + pause;
        let retry_due = (!self.retry.is_empty() || self.failures > 0).then_some(not_before);
        let due = retry_due.into_iter().chain(self.stuck_due).min();
        BatchTiming {
            not_before,
            enough: usize::MAX,
            linger_until: now + self.shared.gather,
            due,
            opens_ahead: self.policy.opens_ahead,
        }
    }

    /// Runs one transaction, or one for each command after a command made its transaction fail.
    fn run_batch(&mut self) {
        // Cloned, so that the guard does not borrow from `self`.
        let checkpoint_lock = Arc::clone(&self.shared.checkpoint_lock);
        self.retry_stuck();
        if self.one_by_one {
            let _guard = checkpoint_lock.lock();
            self.policy.reset();
            return self.run_one_by_one();
        }
        if let Err(error) = self.ledger.begin() {
            self.policy.opens_ahead = false;
            self.begin_failed(&error);
            return;
        }
        fault_point(FaultPoint::Begun);
        let mut current = CurrentBatch {
            batch: self.next_batch(),
            opened: Instant::now(),
            checkpoints: checkpoint_lock.try_lock().map(|checkpoints| *checkpoints),
            counts: BatchCounts::default(),
            undecided: VecDeque::new(),
            interrupted: false,
        };
        current.counts.commands = self.retry.len();
        for closing in std::mem::take(&mut self.retry) {
            self.ledger.book(closing, &mut current.undecided);
        }
        if self.is_failing() {
            // Only the kept closes are written, to find out whether commits succeed again. Queued commands keep
            // waiting.
            return self.finish_batch(current, &checkpoint_lock);
        }
        loop {
            self.decide(&mut current);
            fault_point(FaultPoint::Decided);
            match self.keep_batch_open(&mut current) {
                Woken::Queued => current.interrupted = true,
                Woken::WriteDue => break,
                Woken::WriteFailed(batch, commands, error) => {
                    self.batch_failed(&batch, commands + current.counts.commands, &error);
                    current.batch.mark_lost();
                    return;
                }
                Woken::ForeignWrite(error) => {
                    return self.lost_to_foreign_write(&current, error.as_ref());
                }
            }
        }
        self.finish_batch(current, &checkpoint_lock);
    }

    /// Shares the books, so that a call that ends in time becomes one entry. Under load, batch follows batch
    /// without a pause, and callers keep deciding. Returns why the writer is needed.
    fn keep_batch_open(&mut self, current: &mut CurrentBatch) -> Woken {
        let Self {
            ledger:
                Ledger {
                    books,
                    batch_writer,
                    ..
                },
            shared,
            policy,
            batches,
            failures,
            ..
        } = self;
        let (queue, open) = (&shared.queue, &shared.shared_ledger);
        let CurrentBatch {
            batch,
            opened,
            checkpoints,
            counts,
            undecided,
            interrupted,
        } = current;
        open.share_while(books, batch.durable(), counts, || {
            loop {
                let counts = open.counts();
                let wanted = shared.sync_queue.is_awaited(batch);
                let until = policy.open_until(*opened, counts.first_call, wanted);
                if let Some(until) = until.filter(|until| Instant::now() < *until) {
                    // If one command needed the writer, others will too, and they can be decided together.
                    if *interrupted {
                        sleep(policy.pause());
                    }
                    queue.wait_in_batch(until);
                    if queue.is_closed() {
                        return Woken::WriteDue;
                    }
                    // Queued commands are decided before any call on the shared books.
                    if !queue.is_empty() {
                        return Woken::Queued;
                    }
                    continue;
                }
                policy.observe(&counts);
                let checkpoint_lock = shared.checkpoint_lock.try_lock();
                let same_log = checkpoint_lock.is_some()
                    && *checkpoints == checkpoint_lock.as_deref().copied();
                if !policy.starts_next_at_once(Instant::now()) || !same_log || !undecided.is_empty()
                {
                    return Woken::WriteDue;
                }
                *batches += 1;
                let done = std::mem::replace(batch, Batch::synced_by(*batches, &shared.sync_queue));
                if let Err(woken) = take_batch(batch_writer, shared, done, batch) {
                    return woken;
                }
                *opened = Instant::now();
                *interrupted = false;
                *failures = 0;
            }
        })
    }

    /// Writes the last batch before a pause.
    fn finish_batch(&mut self, mut current: CurrentBatch, checkpoint_lock: &Mutex<u64>) {
        let (_guard, begun) = self.lock_checkpoints(checkpoint_lock, &mut current);
        let CurrentBatch {
            batch,
            counts,
            undecided,
            ..
        } = current;
        self.policy.observe(&counts);
        self.retry = undecided;
        // Some closes could not be decided. Run alone, they show whether the fault is their own.
        self.one_by_one = !self.retry.is_empty();
        // Everyone concerned has been told of a failure, and its closes are in `retry`.
        let _: Result<(), FailureKind> = self.end(batch, counts.commands, begun);
    }

    /// The last batch is committed, but a program that ignores the writer lock has written since, or is
    /// writing. Everything that was decided meanwhile was decided on rows that may be stale.
    fn lost_to_foreign_write(&mut self, current: &CurrentBatch, error: Option<&rusqlite::Error>) {
        self.failures = 0;
        if let Some(error) = error {
            self.begin_failed(error);
        }
        let commands = current.counts.commands;
        tracing::warn!(commands, "another program wrote out of turn");
        self.policy.opens_ahead = false;
        self.retry.extend(self.ledger.roll_back());
        self.ledger.books.counters.commits_failed.add(1);
        self.recount();
        current.batch.mark_lost();
    }

    /// Shares the books with the callers while `sleep` runs.
    fn share_while(&mut self, current: &mut CurrentBatch, sleep: impl FnOnce()) {
        let CurrentBatch { batch, counts, .. } = current;
        let books = &mut self.ledger.books;
        let open = &self.shared.shared_ledger;
        open.share_while(books, batch.durable(), counts, sleep);
    }

    /// Decides the queued commands.
    fn decide(&mut self, current: &mut CurrentBatch) {
        let mut drained = std::mem::take(&mut self.drained);
        self.shared.queue.drain(&mut drained);
        current.counts.commands += drained.len();
        for queued in drained.drain(..) {
            match queued.command {
                Command::Admit(..) => current.counts.admits(),
                Command::Close(..) => current.counts.closes(),
                _ => {}
            }
            let CurrentBatch {
                batch, undecided, ..
            } = current;
            self.ledger
                .apply(queued.command, &self.shared.queue, batch, undecided);
        }
        self.drained = drained;
    }

    /// Waits until the checkpointer has finished with the log. Only the write waits: commands that arrive
    /// meanwhile are decided in this batch. If the log was checkpointed since the batch began, the transaction
    /// is restarted so that the log restarts from the beginning.
    fn lock_checkpoints<'g>(
        &mut self,
        checkpoint_lock: &'g Mutex<u64>,
        current: &mut CurrentBatch,
    ) -> (MutexGuard<'g, u64>, rusqlite::Result<()>) {
        let free = if self.is_failing() {
            Some(checkpoint_lock.lock())
        } else {
            checkpoint_lock.try_lock()
        };
        if let Some(checkpoints) = free {
            let begun = if current.checkpoints == Some(*checkpoints) {
                Ok(())
            } else {
                self.ledger.restart()
            };
            return (checkpoints, begun);
        }
        loop {
            let mut guard = None;
            self.share_while(current, || {
                guard = checkpoint_lock.try_lock_for(GATHER_PAUSE);
            });
            if let Some(guard) = guard {
                return (guard, self.ledger.restart());
            }
            self.decide(current);
        }
    }

    /// Whether the last commit failed.
    pub(crate) fn is_failing(&self) -> bool {
        self.ledger.books.counters.failing.get()
    }

    pub(crate) fn next_batch(&mut self) -> BatchGuard {
        self.batches += 1;
        Batch::synced_by(self.batches, &self.shared.sync_queue)
    }

    pub(crate) fn begin_failed(&mut self, error: &rusqlite::Error) {
        // A short transaction of another process is not a failure. The commands wait in the queue.
        if FailureKind::of(error) == FailureKind::Locked {
            tracing::debug!("the ledger waits for another writer");
            return;
        }
        self.failures = self.failures.saturating_add(1);
        self.ledger.books.counters.failing.set(true);
        tracing::error!(%error, "the ledger could not begin a transaction");
    }

    /// Commits if the transaction began well. Otherwise rolls everything back and keeps the closes.
    pub(crate) fn end(
        &mut self,
        batch: BatchGuard,
        commands: usize,
        begun: rusqlite::Result<()>,
    ) -> Result<(), FailureKind> {
        batch.seal();
        match begun.and_then(|()| self.ledger.commit()) {
            Ok(wrote) => {
                fault_point(FaultPoint::Committed);
                self.shared.sync_queue.push(batch, wrote);
                self.committed(commands);
                Ok(())
            }
            Err(error) => Err(self.batch_failed(&batch, commands, &error)),
        }
    }

    fn committed(&mut self, commands: usize) {
        self.failures = 0;
        count_commit(&self.ledger.books.counters, commands);
        self.count();
    }

    /// Rolls everything back and keeps the closes.
    fn batch_failed(
        &mut self,
        batch: &Batch,
        commands: usize,
        error: &rusqlite::Error,
    ) -> FailureKind {
        let kind = FailureKind::of(error);
        tracing::error!(%error, commands, "a transaction of the ledger failed");
        // Before the undecided closes, to keep the order.
        for closing in self.ledger.roll_back().into_iter().rev() {
            self.retry.push_front(closing);
        }
        if kind == FailureKind::DiskFull {
            self.shared.ballast.free();
        }
        self.failures = self.failures.saturating_add(1);
        self.one_by_one |= kind == FailureKind::Permanent;
        let counters = &self.ledger.books.counters;
        counters.failing.set(true);
        counters.commits_failed.add(1);
        self.recount();
        // Last, so that whoever learns of the loss sees the updated counters.
        batch.mark_lost();
        kind
    }

    fn recount(&mut self) {
        if let Err(error) = self.ledger.recount() {
            tracing::error!(%error, "open holds could not be counted");
        }
        self.count();
    }

    fn count(&self) {
        let counters = &self.ledger.books.counters;
        counters.open_holds.set(self.ledger.books.open_holds);
        counters.retried_closes.set(self.retry.len() as u64);
        counters.stuck_closes.set(self.stuck.len() as u64);
        counters.lost_holds.set(self.ledger.lost.len() as u64);
    }
}

/// Writes one batch while callers decide on the shared books for the next one, and then begins the transaction
/// of the next one.
fn take_batch(
    batch_writer: &mut BatchWriter<'_>,
    shared: &WriterContext,
    done: BatchGuard,
    next: &Arc<Batch>,
) -> Result<(), Woken> {
    done.seal();
    let counts = shared
        .shared_ledger
        .take_batch(&mut batch_writer.pending_write, next.durable());
    fault_point(FaultPoint::BatchTaken);
    match batch_writer.write_and_commit() {
        Ok(wrote) => {
            fault_point(FaultPoint::Committed);
            shared.sync_queue.push(done, wrote);
        }
        Err(error) => return Err(Woken::WriteFailed(done, counts.commands, error)),
    }
    count_commit(&batch_writer.counters, counts.commands);
    match batch_writer.begin_next() {
        Ok(CacheState::Valid) => Ok(()),
        Ok(CacheState::Stale) => Err(Woken::ForeignWrite(None)),
        Err(error) => Err(Woken::ForeignWrite(Some(error))),
    }
}

fn count_commit(counters: &Counters, commands: usize) {
    counters.failing.set(false);
    counters.batches.add(1);
    counters.commands.add(commands as u64);
}
