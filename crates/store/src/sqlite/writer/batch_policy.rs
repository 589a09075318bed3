//! How busy the writer is, and what follows from that: how long a batch stays open, whether the next
//! one follows at once, and when other processes have their turn.

use std::time::Duration;

use super::shared_ledger::Tally;
use crate::sync::Instant;

/// From so many calls at once in one batch on, the next one stays open for company.
const LOADED_CALLS: usize = 4;
/// Under load the writer sleeps so long before it takes what is queued, or begins a batch that does not
/// follow at once.
pub(crate) const STEP: Duration = Duration::from_micros(200);
/// Between batches that are opened ahead other processes have so long to write, more than they sleep
/// between two looks ([`wait_for_lock`](crate::sqlite::connection::connect::wait_for_lock)).
const LOCK_FREE: Duration = Duration::from_micros(400);
/// And once in so long: calls that come meanwhile find the books closed.
const LOCK_KEPT_MAX: Duration = Duration::from_millis(50);
/// A batch that nobody waits for stays open for so many times as long: the more calls share one, the
/// less each costs.
const PATIENCE: u32 = 10;

#[derive(Debug)]
pub(crate) struct Load {
    /// Calls come faster than batches are worth making for each.
    loaded: bool,
    /// The next batch is opened ahead of its calls, which then find the books open.
    pub(crate) ahead: bool,
    /// When other processes last could have the lock.
    lock_freed: Instant,
    gather: Duration,
}

impl Load {
    pub(crate) fn new(gather: Duration) -> Self {
        Self {
            loaded: false,
            ahead: false,
            lock_freed: Instant::now(),
            gather,
        }
    }

    /// Learns from a batch.
    pub(crate) fn judge(&mut self, tally: &Tally) {
        // One that nobody came to says nothing: all may be waiting for the disk.
        if tally.first_call.is_some() {
            self.loaded = tally.most_calls >= LOADED_CALLS;
        }
        self.ahead = self.loaded && tally.first_call.is_some() && !self.gather.is_zero();
    }

    /// Commands are taken one by one: nothing is known, and nothing follows.
    pub(crate) fn forget(&mut self) {
        (self.loaded, self.ahead) = (false, false);
    }

    /// Until when a batch that was opened then stays open; nothing when it is over. Under load whoever
    /// waits for it waits for some company too.
    pub(crate) fn open_until(
        &self,
        opened: Instant,
        first_call: Option<Instant>,
        wanted: bool,
    ) -> Option<Instant> {
        match (self.loaded, wanted) {
            _ if first_call.is_none() && (wanted || !self.ahead) => None,
            (true, false) => Some(opened + self.gather * PATIENCE),
            (true, true) | (false, false) => Some(first_call.unwrap_or(opened) + self.gather),
            (false, true) => None,
        }
    }

    /// How long the writer sleeps before it looks for more to decide on.
    pub(crate) fn nap(&self) -> Duration {
        if self.loaded {
            STEP.min(self.gather)
        } else {
            Duration::ZERO
        }
    }

    /// Whether the next batch begins as soon as this one is committed.
    pub(crate) fn goes_on(&self, now: Instant) -> bool {
        self.ahead && self.rest(now).is_zero()
    }

    /// How long the lock is left alone from `now` on.
    pub(crate) fn free_lock(&mut self, now: Instant) -> Duration {
        let rest = self.rest(now);
        if !self.ahead || !rest.is_zero() {
            self.lock_freed = now;
        }
        rest
    }

    fn rest(&self, now: Instant) -> Duration {
        let kept = now.saturating_duration_since(self.lock_freed);
        match (self.loaded, self.ahead) {
            (_, true) if kept < LOCK_KEPT_MAX => Duration::ZERO,
            (_, true) => LOCK_FREE,
            (true, false) => STEP,
            (false, false) => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::sqlite::connection::connect::LOCK_STEP;
    use crate::sqlite::writer::batch_policy::*;

    const GATHER: Duration = Duration::from_millis(1);
    const MS: Duration = Duration::from_millis(1);

    fn load(loaded: bool, ahead: bool) -> Load {
        Load {
            loaded,
            ahead,
            ..Load::new(GATHER)
        }
    }

    #[test]
    fn batches_opened_ahead_leave_the_lock_to_others_now_and_then() {
        for ((loaded, ahead, kept), pause) in [
            ((false, false, 49 * MS), Duration::ZERO),
            ((false, false, 50 * MS), Duration::ZERO),
            ((true, false, 49 * MS), STEP),
            ((true, true, 49 * MS), Duration::ZERO),
            ((true, true, 50 * MS), LOCK_FREE),
            ((true, true, 500 * MS), LOCK_FREE),
        ] {
            let mut load = load(loaded, ahead);
            let now = load.lock_freed + kept;
            assert_eq!(load.goes_on(now), ahead && pause.is_zero());
            assert_eq!(load.free_lock(now), pause, "{loaded} {ahead} {kept:?}");
            let freed = !ahead || !pause.is_zero();
            assert_eq!(load.lock_freed == now, freed);
        }
        // Who looks for it while it is free finds it so.
        assert!(LOCK_FREE > LOCK_STEP);
    }

    #[test]
    fn a_batch_stays_open_for_company_under_load() {
        let opened = Instant::now();
        let call = Some(opened + MS);
        for ((loaded, ahead), first_call, wanted, until) in [
            ((false, false), None, false, None),
            ((false, false), None, true, None),
            ((false, false), call, false, Some(2 * MS)),
            ((false, false), call, true, None),
            ((true, false), None, false, None),
            ((true, true), None, false, Some(10 * MS)),
            ((true, true), None, true, None),
            ((true, true), call, false, Some(10 * MS)),
            ((true, true), call, true, Some(2 * MS)),
        ] {
            assert_eq!(
                load(loaded, ahead).open_until(opened, first_call, wanted),
                until.map(|until| opened + until),
                "{loaded} {ahead} {first_call:?} {wanted}"
            );
        }
    }

    #[test]
    fn four_calls_at_once_are_a_load() {
        let mut load = load(false, false);
        let mut tally = Tally::default();
        for calls in 1..=4 {
            tally.admits();
            load.judge(&tally);
            assert_eq!((load.loaded, load.ahead), (calls == 4, calls == 4));
        }
        // An empty batch says nothing, and none is opened behind it.
        load.judge(&Tally::default());
        assert_eq!((load.loaded, load.ahead), (true, false));
        load.forget();
        assert!(!load.loaded);
        assert_eq!(load.nap(), Duration::ZERO);
        load.judge(&tally);
        assert_eq!(load.nap(), STEP);
        // Without a time to gather for nothing is opened ahead, and nothing waited for.
        let mut load = Load::new(Duration::ZERO);
        load.judge(&tally);
        assert_eq!((load.loaded, load.ahead), (true, false));
        assert_eq!(load.nap(), Duration::ZERO);
    }
}
