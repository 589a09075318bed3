//! The writer thread: drains the queue into one transaction after another.
//!
//! It begins the transaction before it takes commands, so that while another process holds the
//! lock they stay in the queue, where they can be refused in time. Decisions are answered at
//! once. A batch stays open until somebody waits for it, or for a moment, in which calls decide on
//! themselves (`open_books`), and those that end soon after they were admitted leave one entry and
//! no hold behind. Under load the next one is opened without waiting for a call. When a transaction
//! fails, who was admitted in it learns so, and its closes are kept and booked again, for as long as
//! the process lives.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use super::disk::Ballast;
use super::ledger::Ledger;
use super::open_books::{OpenBooks, Tally};
use super::trouble::Trouble;
use crate::command::{Closing, Command};
use crate::durable::{Batch, SyncLine};
use crate::error::AdmitError;
use crate::queue::{Pace, Queue, Queued, Wake};

/// From so many calls at once in one batch on, the next one stays open for company.
const LOADED_CALLS: usize = 4;
/// Under load the writer sleeps at least so long, and who is queued meanwhile waits for it.
const STEP: Duration = Duration::from_micros(200);
/// Between batches that are opened ahead other processes have so long to write, more than they sleep
/// between two looks ([`wait_for_lock`](super::connect::wait_for_lock)).
const LOCK_FREE: Duration = Duration::from_micros(400);
/// And once in so long: calls that come meanwhile find the books closed.
const LOCK_KEPT_MAX: Duration = Duration::from_millis(10);
/// A batch that nobody waits for stays open for so many times as long: the more calls share one, the
/// less each costs.
const PATIENCE: u32 = 5;
/// The first pause after a failure; it doubles up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// How often a close that the database refuses by itself is tried again.
const STUCK_PAUSE: Duration = Duration::from_secs(60);
/// How long a closing store tries to book what is left.
const LAST_TRIES: Duration = Duration::from_secs(5);

/// What the writer shares with the rest of the store.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) queue: Arc<Queue>,
    pub(super) line: Arc<SyncLine>,
    pub(super) open_books: Arc<OpenBooks>,
    /// Held while a batch is written; the checkpointer takes it to have the log to itself, and counts
    /// how often it did.
    pub(super) gate: Arc<Mutex<u64>>,
    pub(super) ballast: Arc<Ballast>,
    pub(super) gather: Duration,
}

pub(super) struct Writer<'c> {
    ledger: Ledger<'c>,
    shared: Shared,
    batches: u64,
    /// Closes of failed transactions, in order.
    retry: VecDeque<Closing>,
    /// Closes that fail by themselves.
    stuck: Vec<Closing>,
    stuck_due: Option<Instant>,
    failures: u32,
    /// One command per transaction: a command among the last ones spoils its transaction, and must not
    /// take others with it.
    careful: bool,
    /// Calls come faster than batches are worth making for each.
    loaded: bool,
    /// The next batch is opened ahead of its calls, which then find the books open.
    ahead: bool,
    /// When other processes last could have the lock.
    lock_freed: Instant,
    drained: Vec<Queued>,
}

/// A batch in the making.
struct Round {
    batch: Arc<Batch>,
    /// What stood at the gate when it began; nothing while the checkpointer was there.
    folds: Option<u64>,
    tally: Tally,
    /// Closes that could not be decided.
    again: VecDeque<Closing>,
}

impl<'c> Writer<'c> {
    pub(super) fn new(ledger: Ledger<'c>, shared: Shared) -> Self {
        Self {
            ledger,
            shared,
            batches: 0,
            retry: VecDeque::new(),
            stuck: Vec::new(),
            stuck_due: None,
            failures: 0,
            careful: false,
            loaded: false,
            ahead: false,
            lock_freed: Instant::now(),
            drained: Vec::new(),
        }
    }

    /// Works until the queue is closed and everything in it is booked.
    pub(super) fn run(mut self) {
        let now = Instant::now();
        let mut pace = Pace {
            not_before: now,
            enough: usize::MAX,
            linger_until: now,
            due: None,
            ahead: false,
        };
        let mut last_commit = now;
        while self.shared.queue.wait(&pace) == Wake::Work {
            let started = Instant::now();
            let (batches, closed) = (
                self.ledger.books.counters.batches.get(),
                self.shared.queue.is_closed(),
            );
            self.work();
            pace = self.pace();
            if !closed || self.ledger.books.counters.batches.get() > batches {
                last_commit = started;
            } else if last_commit.elapsed() > LAST_TRIES {
                break;
            }
        }
        let left = self.retry.len() + self.stuck.len();
        if left > 0 {
            tracing::error!(
                closes = left,
                "holds could not be closed; the next start closes them as abandoned"
            );
        }
    }

    fn pace(&mut self) -> Pace {
        let now = Instant::now();
        let pause = if self.failures > 0 {
            (PAUSE_MIN * 2_u32.saturating_pow(self.failures.min(10) - 1)).min(PAUSE_MAX)
        } else {
            rest(self.loaded, self.ahead, now - self.lock_freed)
        };
        if !self.ahead || !pause.is_zero() {
            self.lock_freed = now;
        }
        let not_before = now + pause;
        let retry_due = (!self.retry.is_empty() || self.failures > 0).then_some(not_before);
        let due = retry_due.into_iter().chain(self.stuck_due).min();
        Pace {
            not_before,
            enough: usize::MAX,
            linger_until: now + self.shared.gather,
            due,
            ahead: self.ahead,
        }
    }

    /// One transaction, or in careful mode one for each command.
    fn work(&mut self) {
        // Cloned: the guard must not borrow from what the batch changes.
        let gate = Arc::clone(&self.shared.gate);
        if self.stuck_due.is_some_and(|due| Instant::now() >= due) {
            self.retry.extend(self.stuck.drain(..));
            self.stuck_due = None;
            self.careful = true;
        }
        if self.careful {
            let _guard = gate.lock();
            (self.loaded, self.ahead) = (false, false);
            return self.work_carefully();
        }
        if let Err(error) = self.ledger.begin() {
            self.ahead = false;
            self.not_begun(&error);
            return;
        }
        let mut round = Round {
            batch: self.next_batch(),
            folds: gate.try_lock().map(|folds| *folds),
            tally: Tally::default(),
            again: VecDeque::new(),
        };
        round.tally.commands = self.retry.len();
        for closing in std::mem::take(&mut self.retry) {
            self.ledger.book(closing, &mut round.again);
        }
        self.decide(&mut round);
        self.stay_open(&mut round);
        let (_guard, begun) = self.pass(&gate, &mut round);
        let Round {
            batch,
            tally,
            again,
            ..
        } = round;
        self.retry = again;
        // Some closes could not even be decided; alone they show whether it is their own fault.
        self.careful = !self.retry.is_empty();
        // A failure has been told to everyone it concerns; what is left of it is in `retry`.
        let _: Result<(), Trouble> = self.end(batch, tally.commands, begun);
        // One that nobody came to says nothing of the load: all may be waiting for the disk.
        if tally.first_call.is_some() {
            self.loaded = tally.most_calls >= LOADED_CALLS;
        }
        let gathers = !self.shared.gather.is_zero();
        self.ahead = self.loaded && tally.first_call.is_some() && gathers;
    }

    /// Sleeps, and leaves the books open meanwhile: a call that ends in time is one entry. Under load
    /// whoever waits for the batch waits for some company too.
    fn stay_open(&mut self, round: &mut Round) {
        let gather = self.shared.gather;
        let opened = Instant::now();
        while !self.shared.queue.is_closed() {
            let first_call = round.tally.first_call;
            let wanted = self.shared.line.wants(&round.batch);
            let until = match (self.loaded, wanted) {
                _ if first_call.is_none() && (wanted || !self.ahead) => return,
                (true, false) => opened + gather * PATIENCE,
                (true, true) | (false, false) => first_call.unwrap_or(opened) + gather,
                (false, true) => return,
            };
            if Instant::now() >= until {
                return;
            }
            let (queue, loaded) = (Arc::clone(&self.shared.queue), self.loaded);
            self.lend(round, || {
                // Nobody decides on the open books before what is queued.
                if loaded && queue.is_empty() {
                    std::thread::sleep(STEP.min(gather));
                }
                queue.wait_in_batch(until);
            });
            self.decide(round);
        }
    }

    /// Callers decide on themselves while `sleep` lasts.
    fn lend(&mut self, round: &mut Round, sleep: impl FnOnce()) {
        let Round { batch, tally, .. } = round;
        let books = &mut self.ledger.books;
        self.shared.open_books.lend(books, batch, tally, sleep);
    }

    /// Decides on what is queued.
    fn decide(&mut self, round: &mut Round) {
        let mut drained = std::mem::take(&mut self.drained);
        self.shared.queue.drain(&mut drained);
        round.tally.commands += drained.len();
        for queued in drained.drain(..) {
            match queued.command {
                Command::Admit(..) => round.tally.admits(),
                Command::Close(..) => round.tally.closes(),
                _ => {}
            }
            let Round { batch, again, .. } = round;
            self.ledger
                .apply(queued.command, &self.shared.queue, batch, again);
        }
        self.drained = drained;
    }

    /// Waits for the checkpointer to be done with the log. Only writing waits for it: whoever comes
    /// meanwhile is decided on in this batch. A log that was folded since the batch began is begun anew.
    fn pass<'g>(
        &mut self,
        gate: &'g Mutex<u64>,
        round: &mut Round,
    ) -> (MutexGuard<'g, u64>, rusqlite::Result<()>) {
        if let Some(folds) = gate.try_lock() {
            let begun = if round.folds == Some(*folds) {
                Ok(())
            } else {
                self.ledger.begin_again()
            };
            return (folds, begun);
        }
        loop {
            let mut guard = None;
            self.lend(round, || guard = gate.try_lock_for(STEP));
            if let Some(guard) = guard {
                return (guard, self.ledger.begin_again());
            }
            self.decide(round);
        }
    }

    fn work_carefully(&mut self) {
        let mut drained = Vec::new();
        self.shared.queue.drain(&mut drained);
        let retry = std::mem::take(&mut self.retry)
            .into_iter()
            .map(Command::Close);
        let commands: Vec<Command> = retry
            .chain(drained.into_iter().map(|queued| queued.command))
            .collect();
        let mut commands = commands.into_iter();
        self.careful = false;
        while let Some(command) = commands.next() {
            if let Err(error) = self.ledger.begin() {
                self.not_begun(&error);
                self.keep(std::iter::once(command).chain(commands));
                self.careful = true;
                return;
            }
            let batch = self.next_batch();
            let mut again = VecDeque::new();
            self.ledger
                .apply(command, &self.shared.queue, &batch, &mut again);
            match self.end(batch, 1, Ok(())) {
                Ok(()) | Err(Trouble::Inside) => {
                    // What failed was alone in its transaction, so it failed by itself.
                    let failed = std::mem::take(&mut self.retry);
                    self.stick(failed.into_iter().chain(again));
                }
                Err(Trouble::Locked | Trouble::Full | Trouble::Outside) => {
                    self.retry.extend(again);
                    self.keep(commands);
                    self.careful = true;
                    return;
                }
            }
        }
    }

    /// Keeps the closes of commands that were not reached, and refuses the rest.
    fn keep(&mut self, commands: impl Iterator<Item = Command>) {
        for command in commands {
            match command {
                Command::Close(closing) => self.retry.push_back(closing),
                other => other.refuse(AdmitError::Unavailable),
            }
        }
    }

    /// Sets closes aside that fail by themselves.
    fn stick(&mut self, closings: impl Iterator<Item = Closing>) {
        self.stuck.extend(closings);
        if !self.stuck.is_empty() {
            self.stuck_due.get_or_insert(Instant::now() + STUCK_PAUSE);
        }
        self.ledger
            .books
            .counters
            .stuck_closes
            .set(self.stuck.len() as u64);
    }

    fn next_batch(&mut self) -> Arc<Batch> {
        self.batches += 1;
        Batch::new(self.batches, &self.shared.line)
    }

    fn not_begun(&mut self, error: &rusqlite::Error) {
        // Somebody else's short transaction is no failure; the commands wait in the queue.
        if Trouble::of(error) == Trouble::Locked {
            tracing::debug!("the ledger waits for another writer");
            return;
        }
        self.failures = self.failures.saturating_add(1);
        self.ledger.books.counters.failing.set(true);
        tracing::error!(%error, "the ledger could not begin a transaction");
    }

    /// Commits what was well begun, or undoes everything and keeps the closes.
    fn end(
        &mut self,
        batch: Arc<Batch>,
        commands: usize,
        begun: rusqlite::Result<()>,
    ) -> Result<(), Trouble> {
        let counters = Arc::clone(&self.ledger.books.counters);
        batch.seal();
        let ended = match begun.and_then(|()| self.ledger.commit()) {
            Ok(wrote) => {
                self.shared.line.push(batch, wrote);
                self.failures = 0;
                counters.failing.set(false);
                counters.batches.add(1);
                counters.commands.add(commands as u64);
                Ok(())
            }
            Err(error) => {
                let trouble = Trouble::of(&error);
                tracing::error!(%error, commands, "a transaction of the ledger failed");
                // In front of what could not be decided: first come, first booked.
                for closing in self.ledger.roll_back().into_iter().rev() {
                    self.retry.push_front(closing);
                }
                if trouble == Trouble::Full {
                    self.shared.ballast.drop_it();
                }
                self.failures = self.failures.saturating_add(1);
                self.careful |= trouble == Trouble::Inside;
                counters.failing.set(true);
                counters.commits_failed.add(1);
                if let Err(error) = self.ledger.recount() {
                    tracing::error!(%error, "open holds could not be counted");
                }
                // Last: who learns of it finds the counters as they are.
                batch.lose();
                Err(trouble)
            }
        };
        counters.open_holds.set(self.ledger.books.open_holds);
        counters.retried_closes.set(self.retry.len() as u64);
        counters.stuck_closes.set(self.stuck.len() as u64);
        ended
    }
}

/// How long the lock is left alone behind a batch, when others could last have it `kept` ago.
fn rest(loaded: bool, ahead: bool, kept: Duration) -> Duration {
    match (loaded, ahead) {
        (_, true) if kept < LOCK_KEPT_MAX => Duration::ZERO,
        (_, true) => LOCK_FREE,
        (true, false) => STEP,
        (false, false) => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::connect::LOCK_STEP;

    #[test]
    fn batches_opened_ahead_leave_the_lock_to_others_now_and_then() {
        let just_now = Duration::from_millis(9);
        let long = Duration::from_millis(10);
        for ((loaded, ahead, kept), pause) in [
            ((false, false, just_now), Duration::ZERO),
            ((false, false, long), Duration::ZERO),
            ((true, false, just_now), STEP),
            ((true, true, just_now), Duration::ZERO),
            ((true, true, long), LOCK_FREE),
            ((true, true, 50 * long), LOCK_FREE),
        ] {
            assert_eq!(
                rest(loaded, ahead, kept),
                pause,
                "{loaded} {ahead} {kept:?}"
            );
        }
        // Who looks for it while it is free finds it so.
        assert!(LOCK_FREE > LOCK_STEP);
    }
}
