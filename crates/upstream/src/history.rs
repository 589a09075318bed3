//! Counts the outcomes of a channel's calls per minute, for the last hour of this process.

use std::time::{Duration, Instant};

use crate::breaker::CallOutcome;

const MINUTES: usize = 60;

/// The outcomes of the calls of one minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MinuteOfCalls {
    pub requests: u32,
    /// Calls with no response, an incomplete or late one, or a server error.
    pub failed: u32,
    /// Calls that the upstream refused because it is overloaded or rate-limits us.
    pub overloaded: u32,
    /// Calls that failed because our credential was refused.
    pub credential_refused: u32,
}

impl MinuteOfCalls {
    /// All calls that failed.
    pub fn errors(&self) -> u32 {
        let some = self.failed.saturating_add(self.overloaded);
        some.saturating_add(self.credential_refused)
    }
}

/// A ring of minutes. A slot from an earlier hour is cleared when it is reused.
#[derive(Clone, Debug)]
pub(crate) struct History {
    start: Option<Instant>,
    /// For each slot, its minute since `start` (the first is 1, 0 is an unused slot) and the calls of that minute.
    slots: [(u64, MinuteOfCalls); MINUTES],
}

impl Default for History {
    fn default() -> Self {
        Self {
            start: None,
            slots: [(0, MinuteOfCalls::default()); MINUTES],
        }
    }
}

impl History {
    /// Counts a call that ended at `now`. A call that says nothing about the channel is not counted.
    pub(crate) fn count(&mut self, outcome: CallOutcome, now: Instant) {
        let number = minute(*self.start.get_or_insert(now), now);
        let Some((of, calls)) = self.slots.get_mut(slot(number)) else {
            return;
        };
        if *of != number {
            (*of, *calls) = (number, MinuteOfCalls::default());
        }
        let place = match outcome {
            CallOutcome::Served => None,
            CallOutcome::Failed => Some(&mut calls.failed),
            CallOutcome::Overloaded { .. } | CallOutcome::RateLimited { .. } => {
                Some(&mut calls.overloaded)
            }
            CallOutcome::CredentialRefused => Some(&mut calls.credential_refused),
            CallOutcome::Unknown => return,
        };
        if let Some(place) = place {
            *place = place.saturating_add(1);
        }
        calls.requests = calls.requests.saturating_add(1);
    }

    /// The last 60 minutes, oldest first. The last of them is not over yet.
    pub(crate) fn read(&self, now: Instant) -> [MinuteOfCalls; MINUTES] {
        let mut minutes = [MinuteOfCalls::default(); MINUTES];
        let last = self.start.map_or(0, |start| minute(start, now));
        for (minute, age) in minutes.iter_mut().zip((0..MINUTES as u64).rev()) {
            let Some(number) = last.checked_sub(age).filter(|number| *number > 0) else {
                continue;
            };
            match self.slots.get(slot(number)) {
                Some((of, calls)) if *of == number => *minute = *calls,
                _ => {}
            }
        }
        minutes
    }
}

/// The number of the minute since `start`, counted from 1.
fn minute(start: Instant, now: Instant) -> u64 {
    let since = now.saturating_duration_since(start);
    since.as_secs() / Duration::from_secs(60).as_secs() + 1
}

fn slot(number: u64) -> usize {
    usize::try_from(number % MINUTES as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(start: Instant, minutes: u64) -> Instant {
        start + Duration::from_secs(60 * minutes + 1)
    }

    #[test]
    fn calls_are_counted_in_their_minute_and_forgotten_after_an_hour() {
        let mut history = History::default();
        let start = Instant::now();
        assert_eq!(history.read(start), [MinuteOfCalls::default(); MINUTES]);
        history.count(CallOutcome::Served, start);
        history.count(CallOutcome::Failed, after(start, 2));
        history.count(
            CallOutcome::Overloaded { retry_after: None },
            after(start, 2),
        );
        history.count(CallOutcome::CredentialRefused, after(start, 2));
        history.count(CallOutcome::Unknown, after(start, 2));
        let read = history.read(after(start, 2));
        let bad = MinuteOfCalls {
            requests: 3,
            failed: 1,
            overloaded: 1,
            credential_refused: 1,
        };
        assert_eq!((read[57].requests, read[57].errors()), (1, 0));
        assert_eq!((read[58], read[59]), (MinuteOfCalls::default(), bad));
        assert_eq!(read[59].errors(), 3);
        // After 59 minutes the minute with the failures is the oldest, and a minute later it is gone.
        assert_eq!(history.read(after(start, 61))[0], bad);
        assert_eq!(
            history.read(after(start, 62)),
            [MinuteOfCalls::default(); MINUTES]
        );
        // The slot of that minute is reused.
        history.count(CallOutcome::Served, after(start, 62));
        assert_eq!(history.read(after(start, 62))[59].requests, 1);
        assert_eq!(history.read(after(start, 62))[0], MinuteOfCalls::default());
    }
}
