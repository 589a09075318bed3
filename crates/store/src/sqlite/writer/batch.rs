//! Runs one batch of the writer: decides it, shares it with the callers, and writes it.

use std::collections::VecDeque;
use std::sync::Arc;

use super::batch_policy::{Awaited, GATHER_PAUSE};
use super::batch_writer::{BatchWriter, CacheState};
use super::ledger::Ledger;
use super::shared_ledger::BatchLoad;
use super::thread::{Writer, WriterContext, count_commit};
use crate::queue::command::Command;
use crate::queue::durable::{Batch, BatchGuard};
use crate::records::call::Close;
use crate::sqlite::connection::errors::FailureKind;
use crate::sync::{FaultPoint, Instant, Mutex, MutexGuard, fault_point, sleep};

struct CurrentBatch {
    batch: BatchGuard,
    opened: Instant,
    /// The number of checkpoints when the batch began, or `None` if a checkpoint was running.
    checkpoints: Option<u64>,
    counts: BatchLoad,
    /// Closes that could not be decided in this batch.
    undecided: VecDeque<Close>,
    /// Whether the writer had to decide a command of this batch itself.
    interrupted: bool,
}

/// The reason why the writer stops sharing the books.
enum WakeReason {
    Queued,
    /// It is time to write the batch and release the lock.
    WriteDue,
    /// The batch that was taken from the books could not be written. Contains its guard and the number of its commands.
    WriteFailed(BatchGuard, usize, rusqlite::Error),
    /// The batch was written, but another program holds the database's lock or has written since.
    ForeignWrite(Option<rusqlite::Error>),
}

impl Writer<'_> {
    /// Runs one batch and, under load, the batches that follow it without a pause. After a command has made its
    /// transaction fail, runs each command in its own transaction instead.
    pub(super) fn run_batch(&mut self) {
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
            counts: BatchLoad::default(),
            undecided: VecDeque::new(),
            interrupted: false,
        };
        current.counts.commands = self.retry.len();
        for closing in std::mem::take(&mut self.retry) {
            self.ledger.book(closing, &mut current.undecided);
        }
        if self.is_failing() {
            // Writes only the closes that were kept, to find out whether commits succeed again. Queued commands keep
            // waiting.
            return self.finish_batch(current, &checkpoint_lock);
        }
        loop {
            self.decide(&mut current);
            fault_point(FaultPoint::Decided);
            match self.keep_batch_open(&mut current) {
                WakeReason::Queued => current.interrupted = true,
                WakeReason::WriteDue => break,
                WakeReason::WriteFailed(batch, commands, error) => {
                    self.batch_failed(&batch, commands + current.counts.commands, &error);
                    current.batch.mark_lost();
                    return;
                }
                WakeReason::ForeignWrite(error) => {
                    return self.lost_to_foreign_write(&current, error.as_ref());
                }
            }
        }
        self.finish_batch(current, &checkpoint_lock);
    }

    /// Shares the books, so that a call that ends within its batch becomes one entry. Under load, one batch follows
    /// another without a pause, and callers keep deciding. Returns why the writer is needed.
    fn keep_batch_open(&mut self, current: &mut CurrentBatch) -> WakeReason {
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
                let (counts, unfinished) = open.load();
                let awaited = if !shared.sync_queue.is_awaited(batch) {
                    Awaited::No
                } else if unfinished == 0 && shared.sync_queue.is_quick() {
                    Awaited::ByAll
                } else {
                    Awaited::BySome
                };
                let until = policy.open_until(*opened, counts.first_call, awaited);
                if let Some(until) = until.filter(|until| Instant::now() < *until) {
                    // If one command needs the writer, more follow. A short wait lets the writer decide them together.
                    if *interrupted {
                        sleep(policy.pause());
                    }
                    queue.wait_in_batch(until);
                    if queue.is_closed() {
                        return WakeReason::WriteDue;
                    }
                    // Queued commands must be decided before any further call on the shared books.
                    if !queue.is_empty() {
                        return WakeReason::Queued;
                    }
                    continue;
                }
                policy.observe(&counts);
                let checkpoint_lock = shared.checkpoint_lock.try_lock();
                let same_log = checkpoint_lock.is_some()
                    && *checkpoints == checkpoint_lock.as_deref().copied();
                let is_wanted = || batch_writer.writer_lock.is_wanted();
                if !policy.starts_next_at_once(Instant::now(), is_wanted)
                    || !same_log
                    || !undecided.is_empty()
                {
                    return WakeReason::WriteDue;
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
        // Some closes could not be decided. Running each of them alone shows which one fails.
        self.one_by_one = !self.retry.is_empty();
        // On a failure, all waiting callers have been notified, and the closes are in `retry`.
        let _: Result<(), FailureKind> = self.end(batch, counts.commands, begun);
    }

    /// Drops the decisions made since the last commit. A program that ignores the writer lock has written since or is
    /// writing, so the decisions may be based on stale rows.
    fn lost_to_foreign_write(&mut self, current: &CurrentBatch, error: Option<&rusqlite::Error>) {
        self.failures = 0;
        if let Some(error) = error {
            self.begin_failed(error);
        }
        let commands = current.counts.commands;
        tracing::warn!(
            commands,
            "another program has written without the writer lock"
        );
        self.policy.opens_ahead = false;
        self.retry.extend(self.ledger.roll_back());
        self.ledger.books.counters.commits_failed.add(1);
        self.recount();
        current.batch.mark_lost();
    }

    fn share_while(&mut self, current: &mut CurrentBatch, sleep: impl FnOnce()) {
        let CurrentBatch { batch, counts, .. } = current;
        let books = &mut self.ledger.books;
        let open = &self.shared.shared_ledger;
        open.share_while(books, batch.durable(), counts, sleep);
    }

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

    /// Waits until the checkpointer has finished with the log. Only the write waits: commands that arrive meanwhile are
    /// decided in this batch. If the log was checkpointed since the batch began, the transaction is restarted, so that
    /// the log can restart from the beginning.
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
}

/// Writes one batch while callers decide the next one on the shared books. Then begins the transaction of the next
/// batch. With few connections this saves up to 6 % of the CPU time of a call (`docs/decisions/079`).
fn take_batch(
    batch_writer: &mut BatchWriter<'_>,
    shared: &WriterContext,
    done: BatchGuard,
    next: &Arc<Batch>,
) -> Result<(), WakeReason> {
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
        Err(error) => return Err(WakeReason::WriteFailed(done, counts.commands, error)),
    }
    count_commit(&batch_writer.counters, counts.commands);
    match batch_writer.begin_next() {
        Ok(CacheState::Valid) => Ok(()),
        Ok(CacheState::Stale) => Err(WakeReason::ForeignWrite(None)),
        Err(error) => Err(WakeReason::ForeignWrite(Some(error))),
    }
}
