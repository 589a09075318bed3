//! The circuit breaker of a channel: its health, and when a failing channel is tried again.
//!
//! A pure state machine: times are arguments and monotonic. It never refuses a call; it only orders
//! the channels that are tried.

use std::time::{Duration, Instant};

/// Failures in a row that open the breaker.
const CONSECUTIVE_FAILURES_MAX: u32 = 5;
/// The span over which the failure ratio is measured.
const WINDOW: Duration = Duration::from_secs(30);
/// Fewer calls in the window than this have no meaningful ratio.
const WINDOW_CALLS_MIN: u32 = 20;
/// The percentage of failed calls in the window that opens the breaker.
const WINDOW_FAILED_PERCENT: u32 = 50;
/// The first cooldown. It doubles with each failed probe.
const COOLDOWN_MIN: Duration = Duration::from_secs(5);
/// The longest cooldown, whatever `retry-after` an upstream sends.
const COOLDOWN_MAX: Duration = Duration::from_secs(60);
/// The cooldown after a refused credential. It is long because an operator must act.
const CREDENTIAL_COOLDOWN: Duration = Duration::from_secs(60);
/// A probe without a report counts as lost after this time.
const PROBE_LOST: Duration = Duration::from_secs(30);

/// What the end of a call says about the health of its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// The upstream works. It may have refused the request because of the caller's mistake.
    Served,
    /// No response, a broken or late one, or a server error.
    Failed,
    /// The upstream is overloaded and may have said when to come back.
    Overloaded { retry_after: Option<Duration> },
    /// Our credential was refused.
    CredentialRefused,
    /// The call says nothing about the channel: the client left, we stopped the call, or the
    /// upstream refuses this model or region only.
    Unknown,
}

impl CallOutcome {
    /// What the status of a response says about the channel.
    pub fn of_status(status: u16, retry_after: Option<Duration>) -> Self {
        match status {
            401 => Self::CredentialRefused,
            // Usually about one model, region or project, so the channel's other models are
            // unaffected (docs/decisions/015).
            403 => Self::Unknown,
            429 | 529 => Self::Overloaded { retry_after },
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
    /// Healthy.
    Closed,
    /// The cooldown is over. One call may probe the channel.
    Probe,
    /// Failing since this time. The cooldown lasts, or a probe is under way.
    Open { since: Instant },
    /// Its credential was refused.
    CredentialRefused { since: Instant },
}

/// The circuit breaker of one channel.
#[derive(Clone, Debug, Default)]
pub struct Breaker {
    consecutive_failures: u32,
    window: Window,
    trouble: Option<Trouble>,
}

/// The calls of one span. A new span starts when it is over.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    start: Option<Instant>,
    calls: u32,
    failed: u32,
}

#[derive(Clone, Copy, Debug)]
struct Trouble {
    cause: TroubleCause,
    since: Instant,
    cooldown: Duration,
    cooldown_ends: Instant,
    probe_started: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TroubleCause {
    Failing,
    CredentialRefused,
}

impl Breaker {
    /// A closed breaker.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the breaker is not closed.
    pub(crate) fn is_troubled(&self) -> bool {
        self.trouble.is_some()
    }

    /// The state at `now`.
    pub fn state(&self, now: Instant) -> BreakerState {
        let Some(trouble) = self.trouble else {
            return BreakerState::Closed;
        };
        let probing = trouble
            .probe_started
            .is_some_and(|start| now < later(start, PROBE_LOST));
        if now >= trouble.cooldown_ends && !probing {
            return BreakerState::Probe;
        }
        let since = trouble.since;
        match trouble.cause {
            TroubleCause::Failing => BreakerState::Open { since },
            TroubleCause::CredentialRefused => BreakerState::CredentialRefused { since },
        }
    }

    /// How long until a refused credential is tried again; `None` if it is not refused.
    pub fn credential_retry_in(&self, now: Instant) -> Option<Duration> {
        let trouble = self.trouble?;
        let is_out = matches!(self.state(now), BreakerState::CredentialRefused { .. });
        is_out.then(|| trouble.cooldown_ends.saturating_duration_since(now))
    }

    /// A call starts at `now`. If the breaker is not closed, the call is a probe, even during the
    /// cooldown: when every route is open, one of them is tried anyway, and its outcome counts.
    pub fn attempt(&mut self, now: Instant) {
        if let Some(trouble) = &mut self.trouble {
            trouble.probe_started = Some(now);
        }
    }

    /// A call ended at `now`.
    pub fn report(&mut self, outcome: CallOutcome, now: Instant) {
        match outcome {
            CallOutcome::Served => self.served(now),
            CallOutcome::Failed => self.failed(now, None),
            CallOutcome::Overloaded { retry_after } => self.failed(now, retry_after),
            CallOutcome::CredentialRefused => {
                self.enter(TroubleCause::CredentialRefused, CREDENTIAL_COOLDOWN, now);
            }
            CallOutcome::Unknown => {
                if let Some(trouble) = &mut self.trouble {
                    trouble.probe_started = None;
                }
            }
        }
    }

    fn served(&mut self, now: Instant) {
        match self.trouble {
            None => {
                self.consecutive_failures = 0;
                self.window.count(false, now);
            }
            // The success of a call that started before the failures says nothing about the channel
            // now. But an accepted credential is valid.
            Some(trouble)
                if trouble.probe_started.is_some()
                    || trouble.cause == TroubleCause::CredentialRefused =>
            {
                *self = Self::default();
            }
            Some(_) => {}
        }
    }

    fn failed(&mut self, now: Instant, retry_after: Option<Duration>) {
        if let Some(trouble) = self.trouble {
            if trouble.cause == TroubleCause::CredentialRefused {
                return;
            }
            if trouble.probe_started.is_some() {
                let cooldown = retry_after.unwrap_or_else(|| trouble.cooldown.saturating_mul(2));
                self.enter(TroubleCause::Failing, cooldown, now);
            } else if let Some(asked) = retry_after {
                self.enter(TroubleCause::Failing, asked, now);
            }
            return;
        }
        self.consecutive_failures = self.consecutive_failures.saturating_add(1);
        self.window.count(true, now);
        match retry_after {
            // The upstream said when to come back, so open at once.
            Some(cooldown) => self.enter(TroubleCause::Failing, cooldown, now),
            None if self.consecutive_failures >= CONSECUTIVE_FAILURES_MAX
                || self.window.is_bad() =>
            {
                self.enter(TroubleCause::Failing, COOLDOWN_MIN, now);
            }
            None => {}
        }
    }

    fn enter(&mut self, cause: TroubleCause, cooldown: Duration, now: Instant) {
        let cooldown = cooldown.min(COOLDOWN_MAX);
        self.trouble = Some(Trouble {
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
mod tests {
    use super::*;

    /// What happens at a second of a test.
    enum Event {
        Attempt,
        Ends(CallOutcome),
        Nothing,
    }
    use Event::{Attempt, Ends, Nothing};

    /// A state with its time in seconds, as the tables write it.
    #[derive(Debug, PartialEq)]
    enum Expected {
        Closed,
        Probe,
        OpenSince(u64),
        OutSince(u64),
    }

    const SERVED: Event = Ends(CallOutcome::Served);
    const FAILED: Event = Ends(CallOutcome::Failed);
    const REFUSED: Event = Ends(CallOutcome::CredentialRefused);
    const UNKNOWN: Event = Ends(CallOutcome::Unknown);

    fn overloaded(retry_after: u64) -> Event {
        Ends(CallOutcome::Overloaded {
            retry_after: Some(Duration::from_secs(retry_after)),
        })
    }

    fn play(story: Vec<(u64, Event, Expected)>) {
        let start = Instant::now();
        let mut breaker = Breaker::new();
        for (step, (second, event, seen)) in story.into_iter().enumerate() {
            let now = start + Duration::from_secs(second);
            match event {
                Attempt => breaker.attempt(now),
                Ends(outcome) => breaker.report(outcome, now),
                Nothing => {}
            }
            let found = match breaker.state(now) {
                BreakerState::Closed => Expected::Closed,
                BreakerState::Probe => Expected::Probe,
                BreakerState::Open { since } => Expected::OpenSince((since - start).as_secs()),
                BreakerState::CredentialRefused { since } => {
                    Expected::OutSince((since - start).as_secs())
                }
            };
            assert_eq!(found, seen, "step {step} at {second} s");
        }
    }

    #[test]
    fn five_failures_in_a_row_open_and_a_good_probe_closes() {
        play(vec![
            (0, FAILED, Expected::Closed),
            (0, FAILED, Expected::Closed),
            (0, FAILED, Expected::Closed),
            (0, FAILED, Expected::Closed),
            (0, FAILED, Expected::OpenSince(0)),
            (4, Nothing, Expected::OpenSince(0)),
            (5, Nothing, Expected::Probe),
            (5, Attempt, Expected::OpenSince(0)),
            (6, SERVED, Expected::Closed),
            (6, FAILED, Expected::Closed),
        ]);
    }

    #[test]
    fn a_good_answer_between_failures_begins_the_row_anew() {
        play(vec![
            (0, FAILED, Expected::Closed),
            (0, FAILED, Expected::Closed),
            (0, FAILED, Expected::Closed),
            (0, FAILED, Expected::Closed),
            (0, SERVED, Expected::Closed),
            (0, FAILED, Expected::Closed),
            (0, FAILED, Expected::Closed),
        ]);
    }

    #[test]
    fn failed_probes_double_the_rest_up_to_a_minute() {
        let mut story: Vec<_> = (0..4).map(|_| (0, FAILED, Expected::Closed)).collect();
        story.push((0, FAILED, Expected::OpenSince(0)));
        let mut opened = 0;
        for cooldown in [5, 10, 20, 40, 60, 60] {
            let due = opened + cooldown;
            story.extend([
                (due - 1, Nothing, Expected::OpenSince(opened)),
                (due, Nothing, Expected::Probe),
                (due, Attempt, Expected::OpenSince(opened)),
                (due, FAILED, Expected::OpenSince(due)),
            ]);
            opened = due;
        }
        play(story);
    }

    #[test]
    fn half_of_the_calls_failing_opens() {
        let start = Instant::now();
        for (every, opens) in [(2, true), (3, false)] {
            let mut breaker = Breaker::new();
            for call in 0..60u32 {
                breaker.report(
                    match call % every {
                        0 => CallOutcome::Failed,
                        _ => CallOutcome::Served,
                    },
                    start,
                );
            }
            let open = breaker.state(start) != BreakerState::Closed;
            assert_eq!(open, opens, "one of {every} failed");
        }
    }

    #[test]
    fn a_ratio_counts_within_its_window_only() {
        let start = Instant::now();
        let mut breaker = Breaker::new();
        // Every second call fails, but 20 calls never fall into one window.
        for call in 0..200u32 {
            let now = start + Duration::from_secs(u64::from(call) * 2);
            breaker.report(
                match call % 2 {
                    0 => CallOutcome::Failed,
                    _ => CallOutcome::Served,
                },
                now,
            );
            assert_eq!(breaker.state(now), BreakerState::Closed, "call {call}");
        }
    }

    #[test]
    fn retry_after_cools_down_at_once_and_no_longer_than_a_minute() {
        play(vec![
            (0, overloaded(7), Expected::OpenSince(0)),
            (6, Nothing, Expected::OpenSince(0)),
            (7, Nothing, Expected::Probe),
            (7, Attempt, Expected::OpenSince(0)),
            (8, overloaded(86_400), Expected::OpenSince(8)),
            (67, Nothing, Expected::OpenSince(8)),
            (68, Nothing, Expected::Probe),
            (68, Attempt, Expected::OpenSince(8)),
            (69, SERVED, Expected::Closed),
        ]);
    }

    #[test]
    fn overload_without_a_time_is_a_failure_like_others() {
        let vague = || Ends(CallOutcome::Overloaded { retry_after: None });
        play(vec![
            (0, vague(), Expected::Closed),
            (0, vague(), Expected::Closed),
            (0, vague(), Expected::Closed),
            (0, vague(), Expected::Closed),
            (0, vague(), Expected::OpenSince(0)),
        ]);
    }

    #[test]
    fn a_refused_credential_is_taken_out_and_tried_again_each_minute() {
        play(vec![
            (0, REFUSED, Expected::OutSince(0)),
            (1, FAILED, Expected::OutSince(0)),
            (1, overloaded(1), Expected::OutSince(0)),
            (59, Nothing, Expected::OutSince(0)),
            (60, Nothing, Expected::Probe),
            (60, Attempt, Expected::OutSince(0)),
            (61, REFUSED, Expected::OutSince(61)),
            (120, Nothing, Expected::OutSince(61)),
            (121, Attempt, Expected::OutSince(61)),
            (122, SERVED, Expected::Closed),
        ]);
    }

    #[test]
    fn old_calls_that_end_after_the_trouble_began_change_nothing() {
        play(vec![
            (0, overloaded(10), Expected::OpenSince(0)),
            (1, SERVED, Expected::OpenSince(0)),
            (2, FAILED, Expected::OpenSince(0)),
            (10, Nothing, Expected::Probe),
        ]);
    }

    #[test]
    fn a_call_that_is_tried_for_want_of_better_counts_as_a_probe() {
        play(vec![
            (0, overloaded(30), Expected::OpenSince(0)),
            (1, Attempt, Expected::OpenSince(0)),
            (2, SERVED, Expected::Closed),
        ]);
    }

    #[test]
    fn a_probe_that_tells_nothing_makes_room_for_the_next() {
        play(vec![
            (0, overloaded(5), Expected::OpenSince(0)),
            (5, Attempt, Expected::OpenSince(0)),
            (6, UNKNOWN, Expected::Probe),
            (6, Attempt, Expected::OpenSince(0)),
            // This probe is never reported.
            (35, Nothing, Expected::OpenSince(0)),
            (36, Nothing, Expected::Probe),
        ]);
    }

    #[test]
    fn a_status_says_what_it_says_of_the_channel() {
        let wait = Some(Duration::from_secs(3));
        for (status, retry_after, outcome) in [
            (200, None, CallOutcome::Served),
            (400, None, CallOutcome::Served),
            (404, None, CallOutcome::Served),
            (413, None, CallOutcome::Served),
            (401, None, CallOutcome::CredentialRefused),
            (403, None, CallOutcome::Unknown),
            (402, None, CallOutcome::Failed),
            (408, None, CallOutcome::Failed),
            (429, None, CallOutcome::Overloaded { retry_after: None }),
            (429, wait, CallOutcome::Overloaded { retry_after: wait }),
            (529, None, CallOutcome::Overloaded { retry_after: None }),
            (500, wait, CallOutcome::Failed),
            (503, None, CallOutcome::Failed),
            (503, wait, CallOutcome::Overloaded { retry_after: wait }),
        ] {
            assert_eq!(
                CallOutcome::of_status(status, retry_after),
                outcome,
                "{status}"
            );
        }
    }
}
