//! Decides, from the writer's load, how long a batch stays open, whether the next batch follows at once, and when other
//! processes may write.

use std::time::Duration;

use super::shared_ledger::BatchLoad;
use crate::sync::Instant;

/// The writer is under load if a batch had at least this many calls open at the same time. The next batch then stays
/// open longer.
const LOADED_CALLS: usize = 4;
/// How long the writer sleeps under load before it takes queued commands, or before it begins a batch that was not
/// opened ahead.
pub(crate) const GATHER_PAUSE: Duration = Duration::from_micros(200);
/// How long the writer lock is left free for other processes between batches that are opened ahead. It is longer than
/// their polling interval ([`wait_for_lock`](crate::sqlite::connection::connect::wait_for_lock)).
const LOCK_FREE: Duration = Duration::from_micros(400);
/// How long the writer keeps the lock, over batches that are opened ahead, before it leaves the lock free for
/// [`LOCK_FREE`]. This is not done more often, because calls that arrive meanwhile find no shared batch.
const LOCK_KEPT_MAX: Duration = Duration::from_millis(50);
/// Under load, a batch that no caller waits for stays open this many times longer, because calls become cheaper the
/// more of them share a batch.
const UNAWAITED_FACTOR: u32 = 10;

#[derive(Debug)]
pub(crate) struct BatchPolicy {
    /// Whether the last batch with calls had many of them open at the same time.
    loaded: bool,
    /// Whether the next batch is opened before a call arrives, so that calls find a shared batch.
    pub(crate) opens_ahead: bool,
    /// When the lock was last left free for other processes.
    lock_freed: Instant,
    gather: Duration,
}

impl BatchPolicy {
    pub(crate) fn new(gather: Duration) -> Self {
        Self {
            loaded: false,
            opens_ahead: false,
            lock_freed: Instant::now(),
            gather,
        }
    }

    /// Updates the policy after a batch.
    pub(crate) fn observe(&mut self, counts: &BatchLoad) {
        // A batch without calls says nothing about the load: all callers may be waiting for the disk.
        if counts.first_call.is_some() {
            self.loaded = counts.calls_peak >= LOADED_CALLS;
        }
        self.opens_ahead = self.loaded && counts.first_call.is_some() && !self.gather.is_zero();
    }

    /// Called when commands run one by one. The load is then unknown, and no batch is opened ahead.
    pub(crate) fn reset(&mut self) {
        (self.loaded, self.opens_ahead) = (false, false);
    }

    /// The time until which a batch stays open, or `None` if it should be written now. Under load, even an awaited
    /// batch stays open a little longer, so that more calls share it.
    pub(crate) fn open_until(
        &self,
        opened: Instant,
        counts: &BatchLoad,
        is_awaited: bool,
    ) -> Option<Instant> {
        let first_call = counts.first_call;
        match (self.loaded, is_awaited) {
            _ if first_call.is_none() && (is_awaited || !self.opens_ahead) => None,
            _ if is_awaited && counts.calls_have_ended() => None,
            (true, false) => Some(opened + self.gather * UNAWAITED_FACTOR),
            (true, true) | (false, false) => Some(first_call.unwrap_or(opened) + self.gather),
            (false, true) => None,
        }
    }

    /// How long the writer sleeps before it looks for more commands.
    pub(crate) fn pause(&self) -> Duration {
        if self.loaded {
            GATHER_PAUSE.min(self.gather)
        } else {
            Duration::ZERO
        }
    }

    /// Whether the next batch should begin as soon as this one is committed.
    pub(crate) fn starts_next_at_once(&self, now: Instant) -> bool {
        self.opens_ahead && self.pause_before_next(now).is_zero()
    }

    /// How long the lock should stay free, counted from `now`.
    pub(crate) fn lock_pause(&mut self, now: Instant) -> Duration {
        let pause_before_next = self.pause_before_next(now);
        if !self.opens_ahead || !pause_before_next.is_zero() {
            self.lock_freed = now;
        }
        pause_before_next
    }

    fn pause_before_next(&self, now: Instant) -> Duration {
        let kept = now.saturating_duration_since(self.lock_freed);
        match (self.loaded, self.opens_ahead) {
            (_, true) if kept < LOCK_KEPT_MAX => Duration::ZERO,
            (_, true) => LOCK_FREE,
            (true, false) => GATHER_PAUSE,
            (false, false) => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::connection::connect::LOCK_STEP;

    const GATHER: Duration = Duration::from_millis(1);
    const MS: Duration = Duration::from_millis(1);

    fn policy(loaded: bool, opens_ahead: bool) -> BatchPolicy {
        BatchPolicy {
            loaded,
            opens_ahead,
            ..BatchPolicy::new(GATHER)
        }
    }

    #[test]
    fn batches_opened_ahead_leave_the_lock_to_others_now_and_then() {
        for ((loaded, opens_ahead, kept), pause) in [
            ((false, false, 49 * MS), Duration::ZERO),
            ((false, false, 50 * MS), Duration::ZERO),
            ((true, false, 49 * MS), GATHER_PAUSE),
            ((true, true, 49 * MS), Duration::ZERO),
            ((true, true, 50 * MS), LOCK_FREE),
            ((true, true, 500 * MS), LOCK_FREE),
        ] {
            let mut policy = policy(loaded, opens_ahead);
            let now = policy.lock_freed + kept;
            assert_eq!(
                policy.starts_next_at_once(now),
                opens_ahead && pause.is_zero()
            );
            assert_eq!(
                policy.lock_pause(now),
                pause,
                "{loaded} {opens_ahead} {kept:?}"
            );
            let freed = !opens_ahead || !pause.is_zero();
            assert_eq!(policy.lock_freed == now, freed);
        }
        // A process that polls for the lock cannot miss the time in which it is free.
        assert!(LOCK_FREE > LOCK_STEP);
    }

    #[test]
    fn a_batch_stays_open_for_company_under_load() {
        #[derive(Debug, Clone, Copy)]
        enum Calls {
            None,
            Open,
            Ended,
        }
        use Calls::{Ended, Open};
        let opened = Instant::now();
        for ((loaded, opens_ahead), calls, is_awaited, until) in [
            ((false, false), Calls::None, false, None),
            ((false, false), Calls::None, true, None),
            ((false, false), Open, false, Some(2 * MS)),
            ((false, false), Open, true, None),
            ((true, false), Calls::None, false, None),
            ((true, true), Calls::None, false, Some(10 * MS)),
            ((true, true), Calls::None, true, None),
            ((true, true), Open, false, Some(10 * MS)),
            ((true, true), Open, true, Some(2 * MS)),
            ((true, true), Ended, false, Some(10 * MS)),
            ((true, true), Ended, true, None),
        ] {
            let counts = match calls {
                Calls::None => BatchLoad::default(),
                Open => BatchLoad::of_calls(opened + MS, 1),
                Ended => BatchLoad::of_calls(opened + MS, 0),
            };
            assert_eq!(
                policy(loaded, opens_ahead).open_until(opened, &counts, is_awaited),
                until.map(|until| opened + until),
                "{loaded} {opens_ahead} {calls:?} {is_awaited}"
            );
        }
    }

    #[test]
    fn four_calls_at_once_are_a_load() {
        let mut policy = policy(false, false);
        let mut counts = BatchLoad::default();
        for calls in 1..=4 {
            counts.admits();
            policy.observe(&counts);
            assert_eq!(
                (policy.loaded, policy.opens_ahead),
                (calls == 4, calls == 4)
            );
        }
        // An empty batch does not change the load, and no batch is opened ahead after it.
        policy.observe(&BatchLoad::default());
        assert_eq!((policy.loaded, policy.opens_ahead), (true, false));
        policy.reset();
        assert!(!policy.loaded);
        assert_eq!(policy.pause(), Duration::ZERO);
        policy.observe(&counts);
        assert_eq!(policy.pause(), GATHER_PAUSE);
        // Without a gathering time, no batch is opened ahead, and the writer does not sleep before it looks for more
        // commands.
        let mut policy = BatchPolicy::new(Duration::ZERO);
        policy.observe(&counts);
        assert_eq!((policy.loaded, policy.opens_ahead), (true, false));
        assert_eq!(policy.pause(), Duration::ZERO);
    }
}
