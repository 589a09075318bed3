//! What is known of a channel's health, and when a troubled one is tried again.
//!
//! A pure state machine: every time is an argument, monotonic, and nothing here waits. It
//! only tells how a channel stands; calls are never refused by it.

use std::time::{Duration, Instant};

/// Failures in a row that open the breaker.
const CONSECUTIVE_FAILURES_MAX: u32 = 5;
/// The span over which the ratio of failures is taken.
const WINDOW: Duration = Duration::from_secs(30);
/// Calls in the window before its ratio means anything.
const WINDOW_CALLS_MIN: u32 = 20;
/// The failed share of the window that opens the breaker, in percent.
const WINDOW_FAILED_PERCENT: u32 = 50;
/// The first rest after trouble; it doubles with each failed probe.
const REST_MIN: Duration = Duration::from_secs(5);
/// No rest is longer, whatever an upstream asks for in `retry-after`.
const REST_MAX: Duration = Duration::from_secs(60);
/// The rest of a channel whose credential was refused: people must act, so it is long.
const CREDENTIAL_REST: Duration = Duration::from_secs(60);
/// A probe that nobody reported on counts as lost after this.
const PROBE_LOST: Duration = Duration::from_secs(30);

/// How one call ended, seen from the channel's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The upstream did its work, also by refusing a request for the caller's fault.
    Served,
    /// No answer, a broken one, a late one, or a server error.
    Failed,
    /// The upstream has too much to do, and may have said for how long.
    Overloaded { retry_after: Option<Duration> },
    /// Our credential was refused.
    CredentialRefused,
    /// The call says nothing of the channel: the caller left, we stopped it, or the upstream has
    /// something against this one model or region.
    Unknown,
}

impl Outcome {
    /// What an answer's status says of the channel.
    pub fn of_status(status: u16, retry_after: Option<Duration>) -> Self {
        match status {
            401 => Self::CredentialRefused,
            // Mostly about one model, region or project: the channel's other models must not suffer
            // (docs/decisions/015).
            403 => Self::Unknown,
            429 | 529 => Self::Overloaded { retry_after },
            503 if retry_after.is_some() => Self::Overloaded { retry_after },
            // 402 is our account's money: as useless as a server error, but it may come back soon.
            402 | 408 | 500..=599 => Self::Failed,
            _ => Self::Served,
        }
    }
}

/// How a channel stands at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// In good health.
    Closed,
    /// Rested after trouble: one call may find out whether it is over.
    Probe,
    /// In trouble since this time; resting, or a probe is under way.
    Open { since: Instant },
    /// Its credential was refused.
    TakenOut { since: Instant },
}

/// The health of one channel.
#[derive(Clone, Debug, Default)]
pub struct Breaker {
    consecutive_failures: u32,
    window: Window,
    trouble: Option<Trouble>,
}

/// Calls since a start; a new one begins when it is over.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    start: Option<Instant>,
    calls: u32,
    failed: u32,
}

#[derive(Clone, Copy, Debug)]
struct Trouble {
    why: Why,
    since: Instant,
    rest: Duration,
    rested_at: Instant,
    probe_started: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Failing,
    CredentialRefused,
}

impl Breaker {
    /// A channel that nothing bad is known of.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether anything is known against the channel.
    pub(crate) fn is_troubled(&self) -> bool {
        self.trouble.is_some()
    }

    /// How the channel stands at `now`.
    pub fn state(&self, now: Instant) -> State {
        let Some(trouble) = self.trouble else {
            return State::Closed;
        };
        let probing = trouble
            .probe_started
            .is_some_and(|start| now < later(start, PROBE_LOST));
        if now >= trouble.rested_at && !probing {
            return State::Probe;
        }
        let since = trouble.since;
        match trouble.why {
            Why::Failing => State::Open { since },
            Why::CredentialRefused => State::TakenOut { since },
        }
    }

    /// How long the channel stays out for its refused credential; `None` when it is not out.
    pub fn out_for(&self, now: Instant) -> Option<Duration> {
        let trouble = self.trouble?;
        let is_out = matches!(self.state(now), State::TakenOut { .. });
        is_out.then(|| trouble.rested_at.saturating_duration_since(now))
    }

    /// A call goes out at `now`. In trouble it is a probe, rested or not: when every
    /// route is open one of them is tried all the same, and its answer counts.
    pub fn attempt(&mut self, now: Instant) {
        if let Some(trouble) = &mut self.trouble {
            trouble.probe_started = Some(now);
        }
    }

    /// A call ended at `now`.
    pub fn report(&mut self, outcome: Outcome, now: Instant) {
        match outcome {
            Outcome::Served => self.served(now),
            Outcome::Failed => self.failed(now, None),
            Outcome::Overloaded { retry_after } => self.failed(now, retry_after),
            Outcome::CredentialRefused => {
                self.enter(Why::CredentialRefused, CREDENTIAL_REST, now);
            }
            Outcome::Unknown => {
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
            // A call from before the trouble that ends well now says nothing of after it;
            // but a credential that was accepted is a good one.
            Some(trouble)
                if trouble.probe_started.is_some() || trouble.why == Why::CredentialRefused =>
            {
                *self = Self::default();
            }
            Some(_) => {}
        }
    }

    fn failed(&mut self, now: Instant, retry_after: Option<Duration>) {
        if let Some(trouble) = self.trouble {
            if trouble.why == Why::CredentialRefused {
                return;
            }
            if trouble.probe_started.is_some() {
                let rest = retry_after.unwrap_or_else(|| trouble.rest.saturating_mul(2));
                self.enter(Why::Failing, rest, now);
            } else if let Some(asked) = retry_after {
                self.enter(Why::Failing, asked, now);
            }
            return;
        }
        self.consecutive_failures = self.consecutive_failures.saturating_add(1);
        self.window.count(true, now);
        match retry_after {
            // It said when to come back: believe it at once.
            Some(rest) => self.enter(Why::Failing, rest, now),
            None if self.consecutive_failures >= CONSECUTIVE_FAILURES_MAX
                || self.window.is_bad() =>
            {
                self.enter(Why::Failing, REST_MIN, now);
            }
            None => {}
        }
    }

    fn enter(&mut self, why: Why, rest: Duration, now: Instant) {
        let rest = rest.min(REST_MAX);
        self.trouble = Some(Trouble {
            why,
            since: now,
            rest: rest.max(REST_MIN),
            rested_at: later(now, rest),
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

/// `start + span`, or `start` itself at the end of time.
fn later(start: Instant, span: Duration) -> Instant {
    start.checked_add(span).unwrap_or(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What happens at a second, and how the channel stands right after it.
    enum Event {
        Attempt,
        Ends(Outcome),
        Nothing,
    }
    use Event::{Attempt, Ends, Nothing};

    /// A state without its time, as the tables write it.
    #[derive(Debug, PartialEq)]
    enum Seen {
        Closed,
        Probe,
        OpenSince(u64),
        OutSince(u64),
    }

    const SERVED: Event = Ends(Outcome::Served);
    const FAILED: Event = Ends(Outcome::Failed);
    const REFUSED: Event = Ends(Outcome::CredentialRefused);
    const UNKNOWN: Event = Ends(Outcome::Unknown);

    fn overloaded(retry_after: u64) -> Event {
        Ends(Outcome::Overloaded {
            retry_after: Some(Duration::from_secs(retry_after)),
        })
    }

    fn play(story: Vec<(u64, Event, Seen)>) {
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
                State::Closed => Seen::Closed,
                State::Probe => Seen::Probe,
                State::Open { since } => Seen::OpenSince((since - start).as_secs()),
                State::TakenOut { since } => Seen::OutSince((since - start).as_secs()),
            };
            assert_eq!(found, seen, "step {step} at {second} s");
        }
    }

    #[test]
    fn five_failures_in_a_row_open_and_a_good_probe_closes() {
        play(vec![
            (0, FAILED, Seen::Closed),
            (0, FAILED, Seen::Closed),
            (0, FAILED, Seen::Closed),
            (0, FAILED, Seen::Closed),
            (0, FAILED, Seen::OpenSince(0)),
            (4, Nothing, Seen::OpenSince(0)),
            (5, Nothing, Seen::Probe),
            (5, Attempt, Seen::OpenSince(0)),
            (6, SERVED, Seen::Closed),
            (6, FAILED, Seen::Closed),
        ]);
    }

    #[test]
    fn a_good_answer_between_failures_begins_the_row_anew() {
        play(vec![
            (0, FAILED, Seen::Closed),
            (0, FAILED, Seen::Closed),
            (0, FAILED, Seen::Closed),
            (0, FAILED, Seen::Closed),
            (0, SERVED, Seen::Closed),
            (0, FAILED, Seen::Closed),
            (0, FAILED, Seen::Closed),
        ]);
    }

    #[test]
    fn failed_probes_double_the_rest_up_to_a_minute() {
        let mut story: Vec<_> = (0..4).map(|_| (0, FAILED, Seen::Closed)).collect();
        story.push((0, FAILED, Seen::OpenSince(0)));
        let mut opened = 0;
        for rest in [5, 10, 20, 40, 60, 60] {
            let due = opened + rest;
            story.extend([
                (due - 1, Nothing, Seen::OpenSince(opened)),
                (due, Nothing, Seen::Probe),
                (due, Attempt, Seen::OpenSince(opened)),
                (due, FAILED, Seen::OpenSince(due)),
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
                        0 => Outcome::Failed,
                        _ => Outcome::Served,
                    },
                    start,
                );
            }
            let open = breaker.state(start) != State::Closed;
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
                    0 => Outcome::Failed,
                    _ => Outcome::Served,
                },
                now,
            );
            assert_eq!(breaker.state(now), State::Closed, "call {call}");
        }
    }

    #[test]
    fn retry_after_cools_down_at_once_and_no_longer_than_a_minute() {
        play(vec![
            (0, overloaded(7), Seen::OpenSince(0)),
            (6, Nothing, Seen::OpenSince(0)),
            (7, Nothing, Seen::Probe),
            (7, Attempt, Seen::OpenSince(0)),
            (8, overloaded(86_400), Seen::OpenSince(8)),
            (67, Nothing, Seen::OpenSince(8)),
            (68, Nothing, Seen::Probe),
            (68, Attempt, Seen::OpenSince(8)),
            (69, SERVED, Seen::Closed),
        ]);
    }

    #[test]
    fn overload_without_a_time_is_a_failure_like_others() {
        let vague = || Ends(Outcome::Overloaded { retry_after: None });
        play(vec![
            (0, vague(), Seen::Closed),
            (0, vague(), Seen::Closed),
            (0, vague(), Seen::Closed),
            (0, vague(), Seen::Closed),
            (0, vague(), Seen::OpenSince(0)),
        ]);
    }

    #[test]
    fn a_refused_credential_is_taken_out_and_tried_again_each_minute() {
        play(vec![
            (0, REFUSED, Seen::OutSince(0)),
            (1, FAILED, Seen::OutSince(0)),
            (1, overloaded(1), Seen::OutSince(0)),
            (59, Nothing, Seen::OutSince(0)),
            (60, Nothing, Seen::Probe),
            (60, Attempt, Seen::OutSince(0)),
            (61, REFUSED, Seen::OutSince(61)),
            (120, Nothing, Seen::OutSince(61)),
            (121, Attempt, Seen::OutSince(61)),
            (122, SERVED, Seen::Closed),
        ]);
    }

    #[test]
    fn old_calls_that_end_after_the_trouble_began_change_nothing() {
        play(vec![
            (0, overloaded(10), Seen::OpenSince(0)),
            (1, SERVED, Seen::OpenSince(0)),
            (2, FAILED, Seen::OpenSince(0)),
            (10, Nothing, Seen::Probe),
        ]);
    }

    #[test]
    fn a_call_that_is_tried_for_want_of_better_counts_as_a_probe() {
        play(vec![
            (0, overloaded(30), Seen::OpenSince(0)),
            (1, Attempt, Seen::OpenSince(0)),
            (2, SERVED, Seen::Closed),
        ]);
    }

    #[test]
    fn a_probe_that_tells_nothing_makes_room_for_the_next() {
        play(vec![
            (0, overloaded(5), Seen::OpenSince(0)),
            (5, Attempt, Seen::OpenSince(0)),
            (6, UNKNOWN, Seen::Probe),
            (6, Attempt, Seen::OpenSince(0)),
            // Nobody ever reported on this one.
            (35, Nothing, Seen::OpenSince(0)),
            (36, Nothing, Seen::Probe),
        ]);
    }

    #[test]
    fn a_status_says_what_it_says_of_the_channel() {
        let wait = Some(Duration::from_secs(3));
        for (status, retry_after, outcome) in [
            (200, None, Outcome::Served),
            (400, None, Outcome::Served),
            (404, None, Outcome::Served),
            (413, None, Outcome::Served),
            (401, None, Outcome::CredentialRefused),
            (403, None, Outcome::Unknown),
            (402, None, Outcome::Failed),
            (408, None, Outcome::Failed),
            (429, None, Outcome::Overloaded { retry_after: None }),
            (429, wait, Outcome::Overloaded { retry_after: wait }),
            (529, None, Outcome::Overloaded { retry_after: None }),
            (500, wait, Outcome::Failed),
            (503, None, Outcome::Failed),
            (503, wait, Outcome::Overloaded { retry_after: wait }),
        ] {
            assert_eq!(Outcome::of_status(status, retry_after), outcome, "{status}");
        }
    }
}
