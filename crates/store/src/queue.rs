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
use tokio::sync::Notify;

use crate::command::Command;
use crate::error::{AdmitError, StoreError};

/// Balances, changes and extensions that may wait when admissions are already refused.
const OTHERS_WAITING_MAX: usize = 16_384;
/// How far ahead work may be due for a closed queue to wait for it.
const CLOSING_WAIT_MAX: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    bell: Bell,
    bounds: Bounds,
}

/// How the writer is woken.
#[derive(Debug)]
enum Bell {
    /// A thread sleeps in [`Queue::wait`].
    Thread(Condvar),
    /// A task sleeps in [`Queue::wait_as_task`].
    Task(Notify),
}

impl Bell {
    fn ring(&self) {
        match self {
            Self::Thread(wake) => drop(wake.notify_one()),
            Self::Task(wake) => wake.notify_one(),
        }
    }
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
    /// Somebody waits for the open batch itself.
    nudged: bool,
    closed: bool,
}

#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) command: Command,
    pub(crate) at: Instant,
}

/// What the writer sleeps for, so that a push knows whether to wake it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sleep {
    Awake,
    /// For anything at all.
    Idle,
    /// For a command that somebody waits for, or the end of the gathering.
    Gathering,
    /// For the end of a pause, or for so many who wait.
    Paced {
        enough: usize,
    },
}

/// When the writer wants to work next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// No batch starts before this: the distance under load, or the pause after a failure.
    pub(crate) not_before: Instant,
    /// Unless so many wait already: nobody else is to be expected then.
    pub(crate) enough: usize,
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
    /// For a writer that is a thread.
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self::with(bounds, Bell::Thread(Condvar::new()))
    }

    /// For a writer that is a task.
    pub(crate) fn for_task(bounds: Bounds) -> Self {
        Self::with(bounds, Bell::Task(Notify::new()))
    }

    fn with(bounds: Bounds, bell: Bell) -> Self {
        Self {
            state: Mutex::new(State {
                queued: Vec::new(),
                waiting: 0,
                since: Instant::now(),
                sleep: Sleep::Awake,
                nudged: false,
                closed: false,
            }),
            bell,
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
        let waiting_max = match &command {
            Command::Admit(..) => self.bounds.waiting_max,
            // Balances are answered and admitted calls go on, however many ask to be admitted.
            _ => self.bounds.waiting_max.saturating_add(OTHERS_WAITING_MAX),
        };
        if state.waiting >= waiting_max {
            return Err(Refused::Full);
        }
        state.waiting += 1;
        state.add(command, at);
        let wake = match state.sleep {
            Sleep::Awake => false,
            Sleep::Idle | Sleep::Gathering => true,
            Sleep::Paced { enough } => state.waiting >= enough,
        };
        if wake {
            // Once is enough: who comes next need not wake it again.
            state.sleep = Sleep::Awake;
        }
        drop(state);
        if wake {
            self.bell.ring();
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
            self.bell.ring();
        }
    }

    /// Sleeps until a batch should start.
    pub(crate) fn wait(&self, pace: &Pace) -> Wake {
        let mut state = self.state.lock();
        loop {
            let (sleep, until) = match state.plan(pace, self.bounds.gather, Instant::now()) {
                Plan::Wake(wake) => {
                    state.sleep = Sleep::Awake;
                    return wake;
                }
                Plan::Sleep(sleep, until) => (sleep, until),
            };
            state.sleep = sleep;
            match (&self.bell, until) {
                (Bell::Thread(wake), Some(until)) => drop(wake.wait_until(&mut state, until)),
                (Bell::Thread(wake), None) => wake.wait(&mut state),
                (Bell::Task(_), _) => unreachable!("a task waits as a task"),
            }
        }
    }

    /// Sleeps in an open batch, until somebody waits for a decision or for the batch itself, or the
    /// time is over.
    pub(crate) fn wait_in_batch(&self, until: Instant) {
        let Bell::Thread(wake) = &self.bell else {
            unreachable!("a task does not wait in a batch");
        };
        let mut state = self.state.lock();
        while state.waiting == 0 && !state.nudged && !state.closed {
            // A close need not wake it: it is booked with whatever does.
            state.sleep = Sleep::Gathering;
            if wake.wait_until(&mut state, until).timed_out() {
                break;
            }
        }
        state.sleep = Sleep::Awake;
        state.nudged = false;
    }

    /// Somebody waits for the open batch itself.
    pub(crate) fn nudge(&self) {
        let mut state = self.state.lock();
        state.nudged = true;
        drop(state);
        self.bell.ring();
    }

    /// The same as [`wait`](Self::wait) for a task.
    pub(crate) async fn wait_as_task(&self, pace: &Pace) -> Wake {
        let Bell::Task(wake) = &self.bell else {
            unreachable!("a thread waits as a thread");
        };
        loop {
            let until = {
                let mut state = self.state.lock();
                match state.plan(pace, self.bounds.gather, Instant::now()) {
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
            // A ring between the look and the wait is kept for it.
            match until {
                Some(until) => {
                    drop(tokio::time::timeout_at(until.into(), wake.notified()).await);
                }
                None => wake.notified().await,
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
            Command::Admit(..) | Command::Extend(..) | Command::Step(..) | Command::Balance(..) => {
                waited > self.bounds.call_wait_max
            }
            Command::Change(..) | Command::Task(..) => waited > self.bounds.change_wait_max,
            Command::Close(..) | Command::Uncount(..) | Command::Flush(..) => false,
        }
    }

    /// Takes nothing more; the writer ends when the list is empty.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.bell.ring();
    }

    /// Closes when nobody is left to empty the list; who waits learns so.
    pub(crate) fn abandon(&self) {
        self.close();
        let left = std::mem::take(&mut self.state.lock().queued);
        for queued in left {
            queued.command.refuse(AdmitError::Unavailable);
        }
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

/// What the writer does now.
#[derive(Debug, PartialEq, Eq)]
enum Plan {
    Wake(Wake),
    Sleep(Sleep, Option<Instant>),
}

impl State {
    fn plan(&self, pace: &Pace, gather: Duration, now: Instant) -> Plan {
        if self.closed {
            return self.plan_end(pace, now);
        }
        let due = pace.due.is_some_and(|due| now >= due);
        let until = |until: Option<Instant>| until.into_iter().chain(pace.due).min();
        if due || self.waiting > 0 {
            if now >= pace.not_before || self.waiting >= pace.enough {
                return Plan::Wake(Wake::Work);
            }
            let sleep = Sleep::Paced {
                enough: pace.enough,
            };
            // What is due is not due before the pause is over.
            return Plan::Sleep(sleep, Some(pace.not_before));
        }
        if self.queued.is_empty() {
            if now < pace.linger_until {
                return Plan::Sleep(Sleep::Gathering, until(Some(pace.linger_until)));
            }
            return Plan::Sleep(Sleep::Idle, until(None));
        }
        let gathered = (self.since + gather).max(pace.not_before);
        if now >= gathered {
            return Plan::Wake(Wake::Work);
        }
        Plan::Sleep(Sleep::Gathering, until(Some(gathered)))
    }

    /// A pause after a failure holds at the end too, else the end would spin; what is only due much
    /// later is not waited for.
    fn plan_end(&self, pace: &Pace, now: Instant) -> Plan {
        let due = if self.queued.is_empty() {
            pace.due
        } else {
            Some(pace.not_before)
        };
        match due {
            Some(due) if now >= due => Plan::Wake(Wake::Work),
            Some(due) if due <= now + CLOSING_WAIT_MAX => Plan::Sleep(Sleep::Awake, Some(due)),
            _ => Plan::Wake(Wake::End),
        }
    }

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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ledger::{Ask, Micro, UnixMs};
    use tokio::sync::oneshot;

    use super::*;
    use crate::call::Admit;
    use crate::command::{Closing, Ending, Granted};
    use crate::ids::{HoldId, KeyId, WalletId};

    const GATHER: Duration = Duration::from_millis(2);
    type Answer = oneshot::Receiver<Result<Granted, AdmitError>>;

    fn queue(waiting_max: usize, call_wait_max: Duration) -> Queue {
        let change_wait_max = Duration::from_secs(5);
        Queue::new(Bounds {
            gather: GATHER,
            waiting_max,
            call_wait_max,
            change_wait_max,
        })
    }

    fn admission() -> (Command, Answer) {
        let (reply, answer) = oneshot::channel();
        let ask = Ask {
            hold: Micro::ZERO,
            tokens: 0,
            counts: true,
        };
        let (wallet, key) = (WalletId::random(), KeyId::random());
        let admit = Admit {
            wallet,
            key,
            ask,
            request_id: "req_1".into(),
            now: UnixMs::new(0),
        };
        (Command::Admit(admit, reply), answer)
    }

    fn close() -> Command {
        Command::Close(Closing {
            hold: HoldId::new(1),
            now: UnixMs::new(0),
            end: Ending::Released,
        })
    }

    fn at_once(now: Instant) -> Pace {
        Pace {
            not_before: now,
            enough: usize::MAX,
            linger_until: now,
            due: None,
        }
    }

    fn plan(queue: &Queue, pace: &Pace, now: Instant) -> Plan {
        queue.state.lock().plan(pace, GATHER, now)
    }

    #[test]
    fn closes_gather_and_an_admission_does_not_wait_for_them() {
        let queue = queue(10, Duration::MAX);
        let now = Instant::now();
        let pace = at_once(now);
        assert_eq!(plan(&queue, &pace, now), Plan::Sleep(Sleep::Idle, None));
        queue.push_close(close());
        let gathered = queue.state.lock().since + GATHER;
        assert_eq!(
            plan(&queue, &pace, now),
            Plan::Sleep(Sleep::Gathering, Some(gathered))
        );
        assert_eq!(plan(&queue, &pace, gathered), Plan::Wake(Wake::Work));
        let (admission, _answer) = admission();
        queue.push(admission).unwrap();
        assert_eq!(plan(&queue, &pace, now), Plan::Wake(Wake::Work));
    }

    #[test]
    fn under_load_a_batch_waits_for_its_time_or_for_enough_calls() {
        let queue = queue(10, Duration::MAX);
        let now = Instant::now();
        let pace = Pace {
            not_before: now + GATHER,
            enough: 2,
            ..at_once(now)
        };
        let (first, _one) = admission();
        queue.push(first).unwrap();
        let paced = Plan::Sleep(Sleep::Paced { enough: 2 }, Some(now + GATHER));
        assert_eq!(plan(&queue, &pace, now), paced);
        assert_eq!(plan(&queue, &pace, now + GATHER), Plan::Wake(Wake::Work));
        let (second, _two) = admission();
        queue.push(second).unwrap();
        assert_eq!(plan(&queue, &pace, now), Plan::Wake(Wake::Work));
    }

    #[test]
    fn a_closed_queue_ends_when_nothing_is_due_soon() {
        let queue = queue(10, Duration::MAX);
        let now = Instant::now();
        queue.push_close(close());
        queue.close();
        assert_eq!(plan(&queue, &at_once(now), now), Plan::Wake(Wake::Work));
        queue.drain(&mut Vec::new());
        assert_eq!(plan(&queue, &at_once(now), now), Plan::Wake(Wake::End));
        let soon = now + Duration::from_secs(1);
        let retry = Pace {
            due: Some(soon),
            ..at_once(now)
        };
        assert_eq!(
            plan(&queue, &retry, now),
            Plan::Sleep(Sleep::Awake, Some(soon))
        );
        let much_later = Pace {
            due: Some(now + Duration::from_secs(60)),
            ..at_once(now)
        };
        assert_eq!(plan(&queue, &much_later, now), Plan::Wake(Wake::End));
        assert_eq!(queue.push(admission().0), Err(Refused::Closed));
    }

    /// Each of them ends a wait that would never end by itself; a close is there when it does.
    #[test]
    fn a_wait_in_a_batch_ends_with_who_waits_for_it() {
        type End = fn(&Queue);
        let decision: End = |queue| queue.push(admission().0).unwrap();
        for (what, end) in [
            ("a decision", decision),
            ("the batch", Queue::nudge),
            ("the end", Queue::close),
        ] {
            let queue = Arc::new(queue(10, Duration::MAX));
            let waiting = std::thread::spawn({
                let queue = Arc::clone(&queue);
                let much_later = Instant::now() + Duration::from_secs(3600);
                move || queue.wait_in_batch(much_later)
            });
            while queue.state.lock().sleep != Sleep::Gathering {
                std::thread::yield_now();
            }
            queue.push_close(close());
            assert_eq!(queue.state.lock().sleep, Sleep::Gathering, "{what}");
            end(&queue);
            waiting.join().unwrap();
            assert!(queue.depth() > 0, "{what}");
        }
    }

    #[test]
    fn a_full_queue_refuses_admissions_alone() {
        let queue = queue(1, Duration::MAX);
        let (first, _one) = admission();
        queue.push(first).unwrap();
        assert_eq!(queue.push(admission().0), Err(Refused::Full));
        let (reply, _answer) = oneshot::channel();
        queue.push(Command::Flush(reply)).unwrap();
        queue.push_close(close());
        assert_eq!(queue.depth(), 3);
    }

    #[test]
    fn who_waited_too_long_is_told_so_and_closes_stay() {
        let queue = queue(10, Duration::ZERO);
        let (admission, mut answer) = admission();
        queue.push_close(close());
        queue.push(admission).unwrap();
        while queue.depth() > 1 {
            queue.expire();
        }
        assert_eq!(answer.try_recv().unwrap().unwrap_err(), AdmitError::Busy);
        let mut left = Vec::new();
        queue.drain(&mut left);
        assert!(matches!(
            left.as_slice(),
            [Queued {
                command: Command::Close(_),
                ..
            }]
        ));
    }
}
