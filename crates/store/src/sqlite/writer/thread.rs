//! The writer thread: drains the queue into one transaction after another.
//!
//! It begins the transaction before it takes commands, so that while another process holds the
//! lock they stay in the queue, where they can be refused in time. Decisions are answered at
//! once. A batch stays open until somebody waits for it, or for a moment, in which calls decide on
//! themselves (`open_books`), and those that end soon after they were admitted leave one entry and
//! no hold behind. Under load the next one is opened without waiting for a call, and decided on while
//! the last one is written. When a transaction fails, who was admitted in it, or meanwhile, learns so,
//! and the closes are kept and booked again, for as long as the process lives. Until a commit has
//! succeeded again nobody is admitted; a call that was answered although its hold was lost is charged by
//! an entry of its own (`docs/decisions/025`).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use ledger::Micro;

use super::batch_policy::{Load, STEP};
use super::batch_writer::{Pen, Seen};
use super::disk_reserve::Ballast;
use super::ledger::Ledger;
use super::shared_ledger::{OpenBooks, Tally};
use crate::queue::command::Command;
use crate::queue::command_queue::{Pace, Queue, Queued, Wake};
use crate::queue::durable::{Batch, OpenBatch, SyncLine};
use crate::records::call::Close;
use crate::sqlite::connection::errors::Trouble;
use crate::stats::Counters;
use crate::sync::{FaultPoint, Instant, Mutex, MutexGuard, fault_point, sleep};

/// The first pause after a failure; it doubles up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// How long a closing store tries to book what is left.
const LAST_TRIES: Duration = Duration::from_secs(5);

/// What the writer shares with the rest of the store.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) queue: Arc<Queue>,
    pub(crate) line: Arc<SyncLine>,
    pub(crate) open_books: Arc<OpenBooks>,
    /// Held while a batch is written; the checkpointer takes it to have the log to itself, and counts
    /// how often it did.
    pub(crate) gate: Arc<Mutex<u64>>,
    pub(crate) ballast: Arc<Ballast>,
    pub(crate) gather: Duration,
}

pub(crate) struct Writer<'c> {
    pub(crate) ledger: Ledger<'c>,
    pub(crate) shared: Shared,
    batches: u64,
    /// Closes of failed transactions, in order.
    pub(crate) retry: VecDeque<Close>,
    /// Closes that fail by themselves.
    pub(crate) stuck: Vec<Close>,
    pub(crate) stuck_due: Option<Instant>,
    failures: u32,
    /// One command per transaction: a command among the last ones spoils its transaction, and must not
    /// take others with it.
    pub(crate) careful: bool,
    load: Load,
    drained: Vec<Queued>,
}

/// A batch in the making.
struct Round {
    batch: OpenBatch,
    opened: Instant,
    /// What stood at the gate when it began; nothing while the checkpointer was there.
    folds: Option<u64>,
    tally: Tally,
    /// Closes that could not be decided.
    again: VecDeque<Close>,
    /// The writer was needed to decide on something.
    interrupted: bool,
}

/// Why the open books are taken back.
enum Left {
    /// There are commands to decide on.
    Queued,
    /// It is time to write, and to leave the lock.
    Over,
    /// What was taken out of the books could not be written.
    Lost(OpenBatch, usize, rusqlite::Error),
    /// It was written, but somebody else has the lock now, or had it since.
    Parted(Option<rusqlite::Error>),
}

impl<'c> Writer<'c> {
    pub(crate) fn new(ledger: Ledger<'c>, shared: Shared) -> Self {
        let load = Load::new(shared.gather);
        Self {
            ledger,
            shared,
            batches: 0,
            retry: VecDeque::new(),
            stuck: Vec::new(),
            stuck_due: None,
            failures: 0,
            careful: false,
            load,
            drained: Vec::new(),
        }
    }

    /// Works until the queue is closed and everything in it is booked.
    pub(crate) fn run(mut self) {
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
        self.report_unbooked();
    }

    /// Names the closes that were not booked when the process ends.
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

    /// Takes the closes out of the queue to be kept, and refuses the rest.
    fn decline_queued(&mut self) {
        let mut drained = Vec::new();
        self.shared.queue.drain(&mut drained);
        self.keep(drained.into_iter().map(|queued| queued.command));
    }

    fn pace(&mut self) -> Pace {
        let now = Instant::now();
        let pause = if self.failures > 0 {
            (PAUSE_MIN * 2_u32.saturating_pow(self.failures.min(10) - 1)).min(PAUSE_MAX)
        } else {
            self.load.free_lock(now)
        };
        let not_before = now + pause;
        let retry_due = (!self.retry.is_empty() || self.failures > 0).then_some(not_before);
        let due = retry_due.into_iter().chain(self.stuck_due).min();
        Pace {
            not_before,
            enough: usize::MAX,
            linger_until: now + self.shared.gather,
            due,
            ahead: self.load.ahead,
        }
    }

    /// One transaction, or in careful mode one for each command.
    fn work(&mut self) {
        // Cloned: the guard must not borrow from what the batch changes.
        let gate = Arc::clone(&self.shared.gate);
        self.unstick();
        if self.careful {
            let _guard = gate.lock();
            self.load.forget();
            return self.work_carefully();
        }
        if let Err(error) = self.ledger.begin() {
            self.load.ahead = false;
            self.not_begun(&error);
            return;
        }
        fault_point(FaultPoint::Begun);
        let mut round = Round {
            batch: self.next_batch(),
            opened: Instant::now(),
            folds: gate.try_lock().map(|folds| *folds),
            tally: Tally::default(),
            again: VecDeque::new(),
            interrupted: false,
        };
        round.tally.commands = self.retry.len();
        for closing in std::mem::take(&mut self.retry) {
            self.ledger.book(closing, &mut round.again);
        }
        if self.is_failing() {
            // Only what was kept is written, to see whether commits succeed again. Who waits stays in the queue.
            return self.close_books(round, &gate);
        }
        loop {
            self.decide(&mut round);
            fault_point(FaultPoint::Decided);
            match self.stay_open(&mut round) {
                Left::Queued => round.interrupted = true,
                Left::Over => break,
                Left::Lost(batch, commands, error) => {
                    self.lost(&batch, commands + round.tally.commands, &error);
                    round.batch.lose();
                    return;
                }
                Left::Parted(error) => return self.parted(&round, error.as_ref()),
            }
        }
        self.close_books(round, &gate);
    }

    /// Leaves the books open: a call that ends in time is one entry. Under load the next batch follows at
    /// once, and calls go on deciding. Tells why the writer is needed.
    fn stay_open(&mut self, round: &mut Round) -> Left {
        let Self {
            ledger: Ledger { books, pen, .. },
            shared,
            load,
            batches,
            failures,
            ..
        } = self;
        let (queue, open) = (&shared.queue, &shared.open_books);
        let Round {
            batch,
            opened,
            folds,
            tally,
            again,
            interrupted,
        } = round;
        open.lend(books, batch.durable(), tally, || {
            loop {
                let tally = open.tally();
                let wanted = shared.line.wants(batch);
                let until = load.open_until(*opened, tally.first_call, wanted);
                if let Some(until) = until.filter(|until| Instant::now() < *until) {
                    // Where one needed the writer others do, and can be decided on together.
                    if *interrupted {
                        sleep(load.nap());
                    }
                    queue.wait_in_batch(until);
                    if queue.is_closed() {
                        return Left::Over;
                    }
                    // Nobody decides on the open books before what is queued.
                    if !queue.is_empty() {
                        return Left::Queued;
                    }
                    continue;
                }
                load.judge(&tally);
                let gate = shared.gate.try_lock();
                let same_log = gate.is_some() && *folds == gate.as_deref().copied();
                if !load.goes_on(Instant::now()) || !same_log || !again.is_empty() {
                    return Left::Over;
                }
                *batches += 1;
                let done = std::mem::replace(batch, Batch::in_line(*batches, &shared.line));
                if let Err(left) = turn_over(pen, shared, done, batch) {
                    return left;
                }
                *opened = Instant::now();
                *interrupted = false;
                *failures = 0;
            }
        })
    }

    /// Ends the last batch for now.
    fn close_books(&mut self, mut round: Round, gate: &Mutex<u64>) {
        let (_guard, begun) = self.pass(gate, &mut round);
        let Round {
            batch,
            tally,
            again,
            ..
        } = round;
        self.load.judge(&tally);
        self.retry = again;
        // Some closes could not even be decided; alone they show whether it is their own fault.
        self.careful = !self.retry.is_empty();
        // A failure has been told to everyone it concerns; what is left of it is in `retry`.
        let _: Result<(), Trouble> = self.end(batch, tally.commands, begun);
    }

    /// The last batch is committed, but somebody who does not wait their turn has the lock or had it
    /// since: what was decided meanwhile was decided on rows that may not be true.
    fn parted(&mut self, round: &Round, error: Option<&rusqlite::Error>) {
        self.failures = 0;
        if let Some(error) = error {
            self.not_begun(error);
        }
        let commands = round.tally.commands;
        tracing::warn!(commands, "another program wrote out of turn");
        self.load.ahead = false;
        self.retry.extend(self.ledger.roll_back());
        self.ledger.books.counters.commits_failed.add(1);
        self.recount();
        round.batch.lose();
    }

    /// Callers decide on themselves while `sleep` lasts.
    fn lend(&mut self, round: &mut Round, sleep: impl FnOnce()) {
        let Round { batch, tally, .. } = round;
        let books = &mut self.ledger.books;
        let open = &self.shared.open_books;
        open.lend(books, batch.durable(), tally, sleep);
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
        let free = if self.is_failing() {
            Some(gate.lock())
        } else {
            gate.try_lock()
        };
        if let Some(folds) = free {
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

    /// Whether the last commit failed.
    pub(crate) fn is_failing(&self) -> bool {
        self.ledger.books.counters.failing.get()
    }

    pub(crate) fn next_batch(&mut self) -> OpenBatch {
        self.batches += 1;
        Batch::in_line(self.batches, &self.shared.line)
    }

    pub(crate) fn not_begun(&mut self, error: &rusqlite::Error) {
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
    pub(crate) fn end(
        &mut self,
        batch: OpenBatch,
        commands: usize,
        begun: rusqlite::Result<()>,
    ) -> Result<(), Trouble> {
        batch.seal();
        match begun.and_then(|()| self.ledger.commit()) {
            Ok(wrote) => {
                fault_point(FaultPoint::Committed);
                self.shared.line.push(batch, wrote);
                self.committed(commands);
                Ok(())
            }
            Err(error) => Err(self.lost(&batch, commands, &error)),
        }
    }

    fn committed(&mut self, commands: usize) {
        self.failures = 0;
        count_commit(&self.ledger.books.counters, commands);
        self.count();
    }

    /// Undoes everything and keeps the closes.
    fn lost(&mut self, batch: &Batch, commands: usize, error: &rusqlite::Error) -> Trouble {
        let trouble = Trouble::of(error);
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
        let counters = &self.ledger.books.counters;
        counters.failing.set(true);
        counters.commits_failed.add(1);
        self.recount();
        // Last: who learns of it finds the counters as they are.
        batch.lose();
        trouble
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

/// Writes what was decided for one batch while the books lie open for the next one, whose transaction is
/// then begun.
fn turn_over(
    pen: &mut Pen<'_>,
    shared: &Shared,
    done: OpenBatch,
    next: &Arc<Batch>,
) -> Result<(), Left> {
    done.seal();
    let tally = shared.open_books.turn_over(&mut pen.draft, next.durable());
    fault_point(FaultPoint::Drafted);
    match pen.put() {
        Ok(wrote) => {
            fault_point(FaultPoint::Committed);
            shared.line.push(done, wrote);
        }
        Err(error) => return Err(Left::Lost(done, tally.commands, error)),
    }
    count_commit(&pen.counters, tally.commands);
    match pen.begin_next() {
        Ok(Seen::Before) => Ok(()),
        Ok(Seen::Anew) => Err(Left::Parted(None)),
        Err(error) => Err(Left::Parted(Some(error))),
    }
}

fn count_commit(counters: &Counters, commands: usize) {
    counters.failing.set(false);
    counters.batches.add(1);
    counters.commands.add(commands as u64);
}
