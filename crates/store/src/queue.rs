//! The way to the ledger writer: one list, one wake.
//!
//! What somebody waits for (an admission, a balance) wakes the writer. Settlements do not:
//! they gather until an admission comes or `gather` is over. Under load batches start
//! `gather` apart, so that a transaction's fixed cost is shared.
//!
//! Admissions are bounded and may be refused here. Closes are not refused: there is at most
//! one for each admitted call, so the bound on calls in flight bounds them too.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::command::Command;
use crate::error::{AdmitError, StoreError};

/// How far ahead work may be due for a closed queue to wait for it.
const CLOSING_WAIT_MAX: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    wake: Condvar,
    bounds: Bounds,
}

/// How much may wait, and how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) gather: Duration,
    /// Commands with somebody waiting for them.
    pub(crate) waiting_max: usize,
    /// How long a call waits for its decision.
    pub(crate) call_wait_max: Duration,
    /// How long an administrative change waits for its decision.
    pub(crate) change_wait_max: Duration,
}

#[derive(Debug)]
struct State {
    queued: Vec<Queued>,
    /// How many of them somebody waits for.
    waiting: usize,
    /// When the list was last empty no more.
    since: Instant,
    sleep: Sleep,
    closed: bool,
}

#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) command: Command,
    at: Instant,
}

/// What the writer sleeps for, so that a push knows whether to wake it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sleep {
    Awake,
    /// For anything at all.
    Idle,
    /// For a command that somebody waits for, or the end of the gathering.
    Gathering,
    /// For a moment; nobody may shorten it.
    Paced,
}

/// When the writer wants to work next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// No batch starts before this, whatever waits: the distance under load, or the pause after a
    /// failure.
    pub(crate) not_before: Instant,
    /// Until here closes are expected soon and need not wake the writer.
    pub(crate) linger_until: Instant,
    /// There is work at this time even with an empty list: closes to repeat.
    pub(crate) due: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    Work,
    /// Closed, and nothing is left.
    End,
}

impl Queue {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            state: Mutex::new(State {
                queued: Vec::new(),
                waiting: 0,
                since: Instant::now(),
                sleep: Sleep::Awake,
                closed: false,
            }),
            wake: Condvar::new(),
            bounds,
        }
    }

    /// Adds a command that somebody waits for; gives it back when there is no room.
    pub(crate) fn push(&self, command: Command) -> Result<(), Refused> {
        let at = Instant::now();
        let mut state = self.state.lock();
        if state.closed {
            return Err(Refused::Closed);
        }
        if state.waiting >= self.bounds.waiting_max {
            return Err(Refused::Full);
        }
        state.waiting += 1;
        state.add(command, at);
        let wake = matches!(state.sleep, Sleep::Idle | Sleep::Gathering);
        if wake {
            // Once is enough: who comes next need not wake it again.
            state.sleep = Sleep::Awake;
        }
        drop(state);
        if wake {
            self.wake.notify_one();
        }
        Ok(())
    }

    /// Adds a command that nobody waits for and that may not be refused.
    pub(crate) fn push_close(&self, command: Command) {
        let at = Instant::now();
        let mut state = self.state.lock();
        if state.closed {
            // The process is ending; the next start closes the hold as abandoned.
            return;
        }
        state.add(command, at);
        let wake = state.sleep == Sleep::Idle;
        if wake {
            state.sleep = Sleep::Awake;
        }
        drop(state);
        if wake {
            self.wake.notify_one();
        }
    }

    /// Sleeps until a batch should start.
    pub(crate) fn wait(&self, pace: &Pace) -> Wake {
        let mut state = self.state.lock();
        loop {
            let now = Instant::now();
            let due = pace.due.is_some_and(|due| now >= due);
            if state.closed {
                state.sleep = Sleep::Awake;
                // A pause after a failure holds at the end too, else the end would spin; what is
                // only due much later is not waited for.
                let due = if state.queued.is_empty() {
                    pace.due
                } else {
                    Some(pace.not_before)
                };
                match due {
                    Some(due) if now >= due => return Wake::Work,
                    Some(due) if due <= now + CLOSING_WAIT_MAX => {
                        self.wake.wait_until(&mut state, due);
                        continue;
                    }
                    _ => return Wake::End,
                }
            }
            let (sleep, until) = if due || state.waiting > 0 {
                if now >= pace.not_before {
                    state.sleep = Sleep::Awake;
                    return Wake::Work;
                }
                (Sleep::Paced, Some(pace.not_before))
            } else if state.queued.is_empty() {
                if now < pace.linger_until {
                    (Sleep::Gathering, Some(pace.linger_until))
                } else {
                    (Sleep::Idle, None)
                }
            } else {
                let gathered = (state.since + self.bounds.gather).max(pace.not_before);
                if now >= gathered {
                    state.sleep = Sleep::Awake;
                    return Wake::Work;
                }
                (Sleep::Gathering, Some(gathered))
            };
            state.sleep = sleep;
            match until.into_iter().chain(pace.due).min() {
                Some(until) => drop(self.wake.wait_until(&mut state, until)),
                None => self.wake.wait(&mut state),
            }
        }
    }

    /// Takes everything, in order; `into` comes in empty and its room is kept for the next time.
    pub(crate) fn drain(&self, into: &mut Vec<Queued>) {
        let mut state = self.state.lock();
        std::mem::swap(&mut state.queued, into);
        state.waiting = 0;
    }

    /// Refuses what has waited too long, which happens only while the writer is held up.
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
        drop(state);
        for queued in old {
            queued.command.refuse(AdmitError::Busy);
        }
    }

    fn is_expired(&self, queued: &Queued, now: Instant) -> bool {
        let waited = now.saturating_duration_since(queued.at);
        match queued.command {
            Command::Admit(..) | Command::Extend(..) | Command::Balance(..) => {
                waited > self.bounds.call_wait_max
            }
            Command::Change(..) => waited > self.bounds.change_wait_max,
            Command::Close(..) | Command::Uncount(..) | Command::Flush(..) => false,
        }
    }

    /// Takes nothing more; the writer ends when the list is empty.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.wake.notify_one();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    pub(crate) fn depth(&self) -> usize {
        self.state.lock().queued.len()
    }

    /// How long the oldest command has been waiting.
    pub(crate) fn oldest(&self) -> Duration {
        let state = self.state.lock();
        state
            .queued
            .first()
            .map_or(Duration::ZERO, |queued| queued.at.elapsed())
    }
}

impl State {
    fn add(&mut self, command: Command, at: Instant) {
        if self.queued.is_empty() {
            self.since = at;
        }
        self.queued.push(Queued { command, at });
    }
}

/// Why a command was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    Full,
    Closed,
}

impl From<Refused> for AdmitError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Full => Self::Busy,
            Refused::Closed => Self::Unavailable,
        }
    }
}

impl From<Refused> for StoreError {
    fn from(_: Refused) -> Self {
        Self::Unavailable
    }
}
