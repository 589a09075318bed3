//! The writer thread: takes commands from the queue and runs them in one transaction after another.
//!
//! The transaction begins before the commands are taken. So while another process holds the lock, commands stay in the
//! queue, where they can expire. Decisions are answered at once. A batch stays open for a short time or until a caller
//! waits for it. Meanwhile callers decide their calls themselves (`shared_ledger`). A call that ends within its batch
//! leaves one entry and no hold. Under load, the next batch is opened without waiting for a call, and is decided while
//! the last one is written.
//!
//! When a transaction fails, the callers that were admitted in it or since then are notified. The closes of the failed
//! transaction are kept and booked again for as long as the process lives. No call is admitted until a commit succeeds.
//! A call that was answered although its hold was lost is charged by an entry of its own (`docs/decisions/025`).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use ledger::Micro;
use rusqlite::Connection;

use super::batch_policy::BatchPolicy;
use super::disk_reserve::DiskReserve;
use super::ledger::Ledger;
use super::shared_ledger::SharedLedger;
use super::writer_lock::WriterLock;
use crate::books::Limits;
use crate::queue::command_queue::{BatchTiming, CommandQueue, Queued, Wake};
use crate::queue::durable::SyncQueue;
use crate::queue::durable::{Batch, BatchGuard};
use crate::records::call::Close;
use crate::sqlite::connection::errors::FailureKind;
use crate::stats::Counters;
use crate::sync::{FaultPoint, Instant, Mutex, fault_point};

/// The first pause after a failure. It doubles with each further failure, up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// How long a store that is being closed keeps trying to book the remaining closes.
const LAST_TRIES: Duration = Duration::from_secs(5);

/// The parts that the writer shares with the rest of the store.
#[derive(Clone)]
pub(crate) struct WriterContext {
    pub(crate) queue: Arc<CommandQueue>,
    pub(crate) sync_queue: Arc<SyncQueue>,
    pub(crate) shared_ledger: Arc<SharedLedger>,
    /// Held while a batch is written. The checkpointer takes it for exclusive access to the log. The value counts its
    /// checkpoints.
    pub(crate) checkpoint_lock: Arc<Mutex<u64>>,
    pub(crate) disk_reserve: Arc<DiskReserve>,
    pub(crate) gather: Duration,
}

pub(crate) struct Writer<'c> {
    pub(crate) ledger: Ledger<'c>,
    pub(crate) shared: WriterContext,
    pub(super) batches: u64,
    /// Closes of failed transactions, in order.
    pub(crate) retry: VecDeque<Close>,
    /// Closes that fail even in a transaction of their own.
    pub(crate) stuck: Vec<Close>,
    pub(crate) stuck_due: Option<Instant>,
    pub(super) failures: u32,
    /// Whether each command gets its own transaction, because one of the last commands made its transaction fail.
    pub(crate) one_by_one: bool,
    pub(super) policy: BatchPolicy,
    pub(super) drained: Vec<Queued>,
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

    /// Runs until the queue is closed and everything in it is booked. If commits keep failing after the queue is
    /// closed, gives up after [`LAST_TRIES`].
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

    /// Keeps the queued closes, and refuses the other commands.
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

    /// Whether the last transaction could not begin or could not be committed.
    pub(crate) fn is_failing(&self) -> bool {
        self.ledger.books.counters.failing.get()
    }

    pub(crate) fn next_batch(&mut self) -> BatchGuard {
        self.batches += 1;
        Batch::synced_by(self.batches, &self.shared.sync_queue)
    }

    pub(crate) fn begin_failed(&mut self, error: &rusqlite::Error) {
        // A short transaction of another process is not a failure. The commands stay in the queue.
        if FailureKind::of(error) == FailureKind::Locked {
            tracing::debug!("the ledger waits for another writer");
            return;
        }
        self.failures = self.failures.saturating_add(1);
        self.ledger.books.counters.failing.set(true);
        tracing::error!(%error, "the ledger could not begin a transaction");
    }

    /// Commits, unless the transaction could not begin. On a failure, rolls everything back and keeps the closes.
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

    pub(super) fn committed(&mut self, commands: usize) {
        self.failures = 0;
        count_commit(&self.ledger.books.counters, commands);
        self.count();
    }

    /// Rolls everything back and keeps the closes.
    pub(super) fn batch_failed(
        &mut self,
        batch: &Batch,
        commands: usize,
        error: &rusqlite::Error,
    ) -> FailureKind {
        let kind = FailureKind::of(error);
        tracing::error!(%error, commands, "a transaction of the ledger failed");
        // Put before the undecided closes, to keep the order.
        for closing in self.ledger.roll_back().into_iter().rev() {
            self.retry.push_front(closing);
        }
        if kind == FailureKind::DiskFull {
            self.shared.disk_reserve.free();
        }
        self.failures = self.failures.saturating_add(1);
        self.one_by_one |= kind == FailureKind::Permanent;
        let counters = &self.ledger.books.counters;
        counters.failing.set(true);
        counters.commits_failed.add(1);
        self.recount();
        // Marked last, so that a caller that is notified of the loss sees the updated counters.
        batch.mark_lost();
        kind
    }

    pub(super) fn recount(&mut self) {
        if let Err(error) = self.ledger.recount() {
            tracing::error!(%error, "open holds could not be counted");
        }
        self.count();
    }

    pub(super) fn count(&self) {
        let counters = &self.ledger.books.counters;
        counters.open_holds.set(self.ledger.books.open_holds);
        counters.retried_closes.set(self.retry.len() as u64);
        counters.stuck_closes.set(self.stuck.len() as u64);
        counters.lost_holds.set(self.ledger.lost.len() as u64);
    }
}

pub(super) fn count_commit(counters: &Counters, commands: usize) {
    counters.failing.set(false);
    counters.batches.add(1);
    counters.commands.add(commands as u64);
}

/// Runs the writer thread.
pub(crate) fn write(
    on: &Connection,
    epoch: crate::records::ids::Epoch,
    limits: Limits,
    counters: Arc<Counters>,
    writer_lock: WriterLock,
    shared: WriterContext,
) {
    let _end = WriterGuard {
        queue: Arc::clone(&shared.queue),
        sync_queue: Arc::clone(&shared.sync_queue),
    };
    match Ledger::new(on, epoch, limits, counters, writer_lock) {
        Ok(ledger) => Writer::new(ledger, shared).run(),
        // This is unlikely, because recovery has just prepared the same statements.
        Err(error) => tracing::error!(%error, "the ledger's writer could not start"),
    }
}

/// Ensures that no caller waits for the writer after it has ended for any reason, and that its commits are still
/// synced.
struct WriterGuard {
    queue: Arc<CommandQueue>,
    sync_queue: Arc<SyncQueue>,
}

impl Drop for WriterGuard {
    fn drop(&mut self) {
        self.queue.abandon();
        self.sync_queue.close();
    }
}
