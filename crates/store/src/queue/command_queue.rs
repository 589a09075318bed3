//! The queue of commands for the ledger writer.
//!
//! A command with a waiting caller (an admission, a balance) starts a batch as soon as the writer is free. Closes
//! gather until a command with a waiting caller arrives, or until the `gather` time is over.
//!
//! The number of waiting admissions is bounded, so admissions may be refused here. Closes are never refused. There is
//! at most one per admitted call, so the limit on calls in flight bounds them too.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::Notify;

use super::command::Command;
use crate::error::{AdmitError, StoreError};
use crate::sync::{AtomicUsize, Condvar, Instant, Mutex};

/// The maximum number of balance lookups, changes and extensions that wait, beyond the limit for admissions.
const OTHERS_WAITING_MAX: usize = 16_384;
/// A closed queue still waits for work that is due within this time.
const CLOSING_WAIT_MAX: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct CommandQueue {
    state: Mutex<State>,
    /// The number of queued commands, readable without the lock.
    length: AtomicUsize,
    notifier: Notifier,
    bounds: Bounds,
}

/// Wakes the writer.
#[derive(Debug)]
enum Notifier {
    /// The writer is a thread that sleeps in [`CommandQueue::wait`].
    Thread(Condvar),
    /// The writer is a task that sleeps in [`CommandQueue::wait_as_task`].
    Task(Notify),
}

impl Notifier {
    fn notify(&self) {
        match self {
            Self::Thread(wake) => drop(wake.notify_one()),
            Self::Task(wake) => wake.notify_one(),
        }
    }
}

/// Limits on the number of waiting commands and on their time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) gather: Duration,
    /// Admissions are refused while this many commands with a waiting caller are queued.
    pub(crate) waiting_max: usize,
    /// The maximum time that a call waits for its decision.
    pub(crate) call_wait_max: Duration,
    /// The maximum time that an administrative change waits for its decision.
    pub(crate) change_wait_max: Duration,
}

#[derive(Debug)]
struct State {
    queued: Vec<Queued>,
    /// The number of queued commands with a waiting caller.
    waiting: usize,
    /// When the queue last became non-empty.
    since: Instant,
    sleep: Sleep,
    /// Whether a caller waits for the open batch to be written.
    batch_requested: bool,
    closed: bool,
}

#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) command: Command,
    pub(crate) at: Instant,
}

/// The event that the writer sleeps for. A push uses it to decide whether to wake the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sleep {
    Awake,
    /// Sleeps until any command arrives.
    Idle,
    /// Sleeps until a command with a waiting caller arrives, or the gathering time is over.
    Gathering,
    /// Sleeps until the end of a pause, or until this many callers wait.
    Paced {
        enough: usize,
    },
}

/// When the writer should start its next batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchTiming {
    /// No batch starts before this time, because of the pause under load or after a failure.
    pub(crate) not_before: Instant,
    /// A batch starts before `not_before` if this many callers wait.
    pub(crate) enough: usize,
    /// Until this time, a close that arrives in an empty queue does not wake the writer.
    pub(crate) linger_until: Instant,
    /// When closes must be retried, even if the queue is empty.
    pub(crate) due: Option<Instant>,
    /// Whether a batch may begin although the queue is empty, because calls are expected.
    pub(crate) opens_ahead: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    Work,
    /// The queue is closed and nothing is left in it.
    End,
}

impl CommandQueue {
    /// A queue for a writer that is a thread.
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self::with(bounds, Notifier::Thread(Condvar::new()))
    }

    /// A queue for a writer that is a task.
    pub(crate) fn for_task(bounds: Bounds) -> Self {
        Self::with(bounds, Notifier::Task(Notify::new()))
    }

    fn with(bounds: Bounds, notifier: Notifier) -> Self {
        Self {
            state: Mutex::new(State {
                queued: Vec::new(),
                waiting: 0,
                since: Instant::now(),
                sleep: Sleep::Awake,
                batch_requested: false,
                closed: false,
            }),
            length: AtomicUsize::new(0),
            notifier,
            bounds,
        }
    }

    /// Adds a command with a waiting caller. Fails if there is no room.
    pub(crate) fn push(&self, command: Command) -> Result<(), PushError> {
        let at = Instant::now();
        let mut state = self.state.lock();
        if state.closed {
            return Err(PushError::Closed);
        }
        let waiting_max = match &command {
            Command::Admit(..) => self.bounds.waiting_max,
            // Balances and the commands of admitted calls have room of their own beyond the limit for admissions.
            _ => self.bounds.waiting_max.saturating_add(OTHERS_WAITING_MAX),
        };
        if state.waiting >= waiting_max {
            return Err(PushError::Full);
        }
        state.waiting += 1;
        self.add(&mut state, command, at);
        let wake = match state.sleep {
            Sleep::Awake => false,
            Sleep::Idle | Sleep::Gathering => true,
            Sleep::Paced { enough } => state.waiting >= enough,
        };
        if wake {
            // One notification is enough: later pushes need not wake the writer again.
            state.sleep = Sleep::Awake;
        }
        drop(state);
        if wake {
            self.notifier.notify();
        }
        Ok(())
    }

    /// Adds a command without a waiting caller. It is never refused.
    pub(crate) fn push_close(&self, command: Command) {
        let at = Instant::now();
        let mut state = self.state.lock();
        if state.closed {
            // The process is ending; the next start closes the hold as abandoned.
            return;
        }
        self.add(&mut state, command, at);
        let wake = state.sleep == Sleep::Idle;
        if wake {
            state.sleep = Sleep::Awake;
        }
        drop(state);
        if wake {
            self.notifier.notify();
        }
    }

    /// Sleeps until a batch should start.
    pub(crate) fn wait(&self, timing: &BatchTiming) -> Wake {
        let mut state = self.state.lock();
        loop {
            let (sleep, until) = match state.plan(timing, self.bounds.gather, Instant::now()) {
                Plan::Wake(wake) => {
                    state.sleep = Sleep::Awake;
                    return wake;
                }
                Plan::Sleep(sleep, until) => (sleep, until),
            };
            state.sleep = sleep;
            match (&self.notifier, until) {
                (Notifier::Thread(wake), Some(until)) => drop(wake.wait_until(&mut state, until)),
                (Notifier::Thread(wake), None) => wake.wait(&mut state),
                (Notifier::Task(_), _) => unreachable!("a task waits as a task"),
            }
        }
    }

    /// Sleeps in an open batch until a caller waits for a decision or for the batch to be written, or until `until`.
    pub(crate) fn wait_in_batch(&self, until: Instant) {
        let Notifier::Thread(wake) = &self.notifier else {
            unreachable!("a task does not wait in a batch");
        };
        let mut state = self.state.lock();
        while state.waiting == 0 && !state.batch_requested && !state.closed {
            // A `Close` command does not wake the writer. It is booked with the next command that does, or when the
            // time is over.
            state.sleep = Sleep::Gathering;
            if wake.wait_until(&mut state, until).timed_out() {
                break;
            }
        }
        state.sleep = Sleep::Awake;
        state.batch_requested = false;
    }

    /// Wakes the writer, because a caller waits for the open batch to be written.
    pub(crate) fn request_batch(&self) {
        let mut state = self.state.lock();
        state.batch_requested = true;
        drop(state);
        self.notifier.notify();
    }

    /// Like [`wait`](Self::wait), for a task.
    pub(crate) async fn wait_as_task(&self, timing: &BatchTiming) -> Wake {
        let Notifier::Task(wake) = &self.notifier else {
            unreachable!("a thread waits as a thread");
        };
        loop {
            let until = {
                let mut state = self.state.lock();
                match state.plan(timing, self.bounds.gather, Instant::now()) {
                    Plan::Wake(wake) => {
                        state.sleep = Sleep::Awake;
                        return wake;
                    }
                    Plan::Sleep(sleep, until) => {
                        state.sleep = sleep;
                        until
                    }
                }
            };
            // `Notify` keeps a notification that arrives between the check and the wait.
            match until {
                Some(until) => {
                    drop(tokio::time::timeout_at(until.into(), wake.notified()).await);
                }
                None => wake.notified().await,
            }
        }
    }

    fn add(&self, state: &mut State, command: Command, at: Instant) {
        if state.queued.is_empty() {
            state.since = at;
        }
        state.queued.push(Queued { command, at });
        self.count(state);
    }

    fn count(&self, state: &State) {
        self.length.store(state.queued.len(), Ordering::Release);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.length.load(Ordering::Acquire) == 0
    }

    /// Takes all commands in order. `into` must be empty; the queue reuses its allocation.
    pub(crate) fn drain(&self, into: &mut Vec<Queued>) {
        let mut state = self.state.lock();
        std::mem::swap(&mut state.queued, into);
        state.waiting = 0;
        self.count(&state);
    }

    /// Refuses commands that have waited too long, which happens only while the writer is blocked.
    pub(crate) fn expire(&self) {
        let now = Instant::now();
        let mut state = self.state.lock();
        let shortest = self.bounds.call_wait_max.min(self.bounds.change_wait_max);
        if state.waiting == 0 || now < state.since + shortest {
            return;
        }
        let (old, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut state.queued)
            .into_iter()
            .partition(|queued| self.is_expired(queued, now));
        state.waiting = state.waiting.saturating_sub(old.len());
        state.queued = kept;
        self.count(&state);
        drop(state);
        for queued in old {
            queued.command.refuse(AdmitError::Busy);
        }
    }

    fn is_expired(&self, queued: &Queued, now: Instant) -> bool {
        let waited = now.saturating_duration_since(queued.at);
        match queued.command {
            Command::Admit(..) | Command::Extend(..) | Command::Step(..) | Command::Balance(..) => {
                waited > self.bounds.call_wait_max
            }
            Command::Change(..) | Command::Task(..) | Command::Alert(..) => {
                waited > self.bounds.change_wait_max
            }
            Command::Close(..) | Command::Uncount(..) | Command::Flush(..) => false,
        }
    }

    /// Accepts no more commands. The writer ends when the queue is empty.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.notifier.notify();
    }

    /// Closes the queue after its writer has ended, and refuses all queued commands.
    pub(crate) fn abandon(&self) {
        self.close();
        let mut left = Vec::new();
        self.drain(&mut left);
        for queued in left {
            queued.command.refuse(AdmitError::Unavailable);
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    pub(crate) fn depth(&self) -> usize {
        self.length.load(Ordering::Acquire)
    }

    /// How long the oldest command has waited.
    pub(crate) fn oldest(&self) -> Duration {
        let state = self.state.lock();
        state
            .queued
            .first()
            .map_or(Duration::ZERO, |queued| queued.at.elapsed())
    }
}

/// The action that the writer should take now.
#[derive(Debug, PartialEq, Eq)]
enum Plan {
    Wake(Wake),
    Sleep(Sleep, Option<Instant>),
}

impl State {
    fn plan(&self, timing: &BatchTiming, gather: Duration, now: Instant) -> Plan {
        if self.closed {
            return self.plan_end(timing, now);
        }
        let due = timing.opens_ahead || timing.due.is_some_and(|due| now >= due);
        let until = |until: Option<Instant>| until.into_iter().chain(timing.due).min();
        if due || self.waiting > 0 {
            if now >= timing.not_before || self.waiting >= timing.enough {
                return Plan::Wake(Wake::Work);
            }
            let sleep = Sleep::Paced {
                enough: timing.enough,
            };
            // Work that is due waits for the end of the pause too.
            return Plan::Sleep(sleep, Some(timing.not_before));
        }
        if self.queued.is_empty() {
            if now < timing.linger_until {
                return Plan::Sleep(Sleep::Gathering, until(Some(timing.linger_until)));
            }
            return Plan::Sleep(Sleep::Idle, until(None));
        }
        let gathered = (self.since + gather).max(timing.not_before);
        if now >= gathered {
            return Plan::Wake(Wake::Work);
        }
        Plan::Sleep(Sleep::Gathering, until(Some(gathered)))
    }

    /// Plans for a closed queue. The pause after a failure applies here too, because the writer would spin without it.
    /// The writer does not wait for retries that are due much later.
    fn plan_end(&self, timing: &BatchTiming, now: Instant) -> Plan {
        let due = if self.queued.is_empty() {
            timing.due
        } else {
            Some(timing.not_before)
        };
        match due {
            Some(due) if now >= due => Plan::Wake(Wake::Work),
            Some(due) if due <= now + CLOSING_WAIT_MAX => Plan::Sleep(Sleep::Awake, Some(due)),
            _ => Plan::Wake(Wake::End),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PushError {
    Full,
    /// The queue is closed, or the lane of the command is unknown.
    Closed,
}

impl From<PushError> for AdmitError {
    fn from(refused: PushError) -> Self {
        match refused {
            PushError::Full => Self::Busy,
            PushError::Closed => Self::Unavailable,
        }
    }
}

impl From<PushError> for StoreError {
    fn from(_: PushError) -> Self {
        Self::Unavailable
    }
}

#[cfg(test)]
#[cfg(not(feature = "schedules"))]
mod tests;
