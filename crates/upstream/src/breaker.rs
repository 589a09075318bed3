//! The circuit breaker of a channel: tracks its health and decides when a failing channel is tried again.
//!
//! It is a pure state machine: times are arguments and monotonic. It never refuses a call; it only affects the order in
//! which channels are tried.

use std::time::{Duration, Instant};

const CONSECUTIVE_FAILURES_MAX: u32 = 5;
/// The length of the window in which the failure ratio is measured.
const WINDOW: Duration = Duration::from_secs(30);
/// The minimum number of calls in the window. With fewer calls, the ratio means nothing.
const WINDOW_CALLS_MIN: u32 = 20;
/// The percentage of failed calls in the window that opens the breaker.
const WINDOW_FAILED_PERCENT: u32 = 50;
/// The first cooldown. It doubles with each failed probe.
const COOLDOWN_MIN: Duration = Duration::from_secs(5);
/// The longest cooldown, also when an upstream sends a longer `retry-after`.
const COOLDOWN_MAX: Duration = Duration::from_secs(60);
/// The cooldown after a refused credential. It is long because only an operator can correct a credential.
const CREDENTIAL_COOLDOWN: Duration = Duration::from_secs(60);
/// A probe whose outcome is not reported within this time counts as lost.
const PROBE_LOST: Duration = Duration::from_secs(30);

/// What the end of a call shows about the health of its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// The upstream works. It may have refused the request because of a mistake of the client.
    Served,
    /// There was no response, it was incomplete or late, or it was a server error.
    Failed,
    /// The upstream is overloaded, and may have said when to retry.
    Overloaded { retry_after: Option<Duration> },
    /// The upstream rate-limits our calls, usually those for one model, and may have said when to retry.
    RateLimited { retry_after: Option<Duration> },
    /// Our credential was refused.
    CredentialRefused,
    /// The call says nothing about the channel: the client left, we stopped the call, or the
    /// upstream refuses this model or region only.
    Unknown,
}

impl CallOutcome {
    /// The outcome that a response's status stands for.
    pub fn of_status(status: u16, retry_after: Option<Duration>) -> Self {
        match status {
            401 => Self::CredentialRefused,
            // A 403 usually concerns one model, region or project, so the other models of the channel are unaffected
            // (docs/decisions/015).
            403 => Self::Unknown,
            429 => Self::RateLimited { retry_after },
            529 => Self::Overloaded { retry_after },
            503 if retry_after.is_some() => Self::Overloaded { retry_after },
            // 402: our account is out of credit. Like a server error, this may end soon.
            402 | 408 | 500..=599 => Self::Failed,
            _ => Self::Served,
        }
    }
}

/// The state of a breaker at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// The channel is healthy.
    Closed,
    /// The cooldown is over. One call may probe the channel.
    Probe,
    /// The channel is failing. Its latest cooldown, which began at `since`, is not over, or a probe is under way.
    Open { since: Instant },
    /// The channel's credential was refused.
    CredentialRefused { since: Instant },
}

/// The circuit breaker of one channel.
#[derive(Clone, Debug, Default)]
pub struct Breaker {
    consecutive_failures: u32,
    window: Window,
    open_period: Option<OpenPeriod>,
}

/// The calls of one window. The next window starts when it is over.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    start: Option<Instant>,
    calls: u32,
    failed: u32,
}

#[derive(Clone, Copy, Debug)]
struct OpenPeriod {
    cause: OpenCause,
    since: Instant,
    cooldown: Duration,
    cooldown_ends: Instant,
    probe_started: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenCause {
    Failing,
    CredentialRefused,
}

impl Breaker {
    /// A closed breaker.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the breaker is not closed.
    pub(crate) fn is_open(&self) -> bool {
        self.open_period.is_some()
    }

    /// Whether the breaker is closed and the last call did not fail.
    pub fn has_no_failures(&self) -> bool {
        self.open_period.is_none() && self.consecutive_failures == 0
    }

    /// The state at `now`.
    pub fn state(&self, now: Instant) -> BreakerState {
        let Some(open_period) = self.open_period else {
            return BreakerState::Closed;
        };
        let probing = open_period
            .probe_started
            .is_some_and(|start| now < later(start, PROBE_LOST));
        if now >= open_period.cooldown_ends && !probing {
            return BreakerState::Probe;
        }
        let since = open_period.since;
        match open_period.cause {
            OpenCause::Failing => BreakerState::Open { since },
            OpenCause::CredentialRefused => BreakerState::CredentialRefused { since },
        }
    }

    /// The time until a refused credential is tried again; `None` if it is not refused or may be tried now.
    pub fn credential_retry_in(&self, now: Instant) -> Option<Duration> {
        let open_period = self.open_period?;
        let is_out = matches!(self.state(now), BreakerState::CredentialRefused { .. });
        is_out.then(|| open_period.cooldown_ends.saturating_duration_since(now))
    }

    /// Records that a call starts at `now`. If the breaker is not closed, the call is a probe, even during the
    /// cooldown: when every route is open, one of them is tried anyway, and its outcome counts.
    pub fn attempt(&mut self, now: Instant) {
        if let Some(open_period) = &mut self.open_period {
            open_period.probe_started = Some(now);
        }
    }

    /// Records the outcome of a call that ended at `now`.
    pub fn report(&mut self, outcome: CallOutcome, now: Instant) {
        match outcome {
            CallOutcome::Served => self.served(now),
            CallOutcome::Failed => self.failed(now, None),
            // A rate limit applies to one model and affects only its route (docs/decisions/069). The other models of a
            // healthy channel stay in use. A rate-limited probe does not show that the channel works.
            CallOutcome::RateLimited { .. } => {
                if self.open_period.is_some() {
                    self.failed(now, None);
                }
            }
            CallOutcome::Overloaded { retry_after } => self.failed(now, retry_after),
            CallOutcome::CredentialRefused => {
                self.enter(OpenCause::CredentialRefused, CREDENTIAL_COOLDOWN, now);
            }
            CallOutcome::Unknown => {
                if let Some(open_period) = &mut self.open_period {
                    open_period.probe_started = None;
                }
            }
        }
    }

    fn served(&mut self, now: Instant) {
        match self.open_period {
            None => {
                self.consecutive_failures = 0;
                self.window.count(false, now);
            }
            // A success of a call that started before the failures does not show that the channel works now. But it
            // shows that the credential is valid.
            Some(open_period)
                if open_period.probe_started.is_some()
                    || open_period.cause == OpenCause::CredentialRefused =>
            {
                *self = Self::default();
            }
            Some(_) => {}
        }
    }

    fn failed(&mut self, now: Instant, retry_after: Option<Duration>) {
        if let Some(open_period) = self.open_period {
            if open_period.cause == OpenCause::CredentialRefused {
                return;
            }
            if open_period.probe_started.is_some() {
                let cooldown =
                    retry_after.unwrap_or_else(|| open_period.cooldown.saturating_mul(2));
                self.enter(OpenCause::Failing, cooldown, now);
            } else if let Some(asked) = retry_after {
                self.enter(OpenCause::Failing, asked, now);
            }
            return;
        }
        self.consecutive_failures = self.consecutive_failures.saturating_add(1);
        self.window.count(true, now);
        match retry_after {
            // The upstream said when to retry, so the breaker opens immediately.
            Some(cooldown) => self.enter(OpenCause::Failing, cooldown, now),
            None if self.consecutive_failures >= CONSECUTIVE_FAILURES_MAX
                || self.window.is_bad() =>
            {
                self.enter(OpenCause::Failing, COOLDOWN_MIN, now);
            }
            None => {}
        }
    }

    fn enter(&mut self, cause: OpenCause, cooldown: Duration, now: Instant) {
        let cooldown = cooldown.min(COOLDOWN_MAX);
        self.open_period = Some(OpenPeriod {
            cause,
            since: now,
            cooldown: cooldown.max(COOLDOWN_MIN),
            cooldown_ends: later(now, cooldown),
            probe_started: None,
        });
    }
}

impl Window {
    fn count(&mut self, failed: bool, now: Instant) {
        let over = self.start.is_none_or(|start| now >= later(start, WINDOW));
        if over {
            *self = Self {
                start: Some(now),
                calls: 0,
                failed: 0,
            };
        }
        self.calls = self.calls.saturating_add(1);
        self.failed = self.failed.saturating_add(u32::from(failed));
    }

    fn is_bad(&self) -> bool {
        self.calls >= WINDOW_CALLS_MIN
            && u64::from(self.failed) * 100
                >= u64::from(self.calls) * u64::from(WINDOW_FAILED_PERCENT)
    }
}

/// `start + span`, or `start` if that overflows.
fn later(start: Instant, span: Duration) -> Instant {
    start.checked_add(span).unwrap_or(start)
}

#[cfg(test)]
mod tests;
