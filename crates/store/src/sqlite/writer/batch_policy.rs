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
/// How long the writer keeps the lock, across batches opened ahead, before it checks whether another process waits. If
/// so, the lock stays free for [`LOCK_FREE`], and calls that arrive meanwhile find no shared batch.
const LOCK_KEPT: Duration = Duration::from_millis(50);
/// How long the writer keeps the lock if no other process reports that it waits. Processes of earlier versions do not
/// report it, but poll often enough to get the lock then. Other programs get the lock only by chance.
const LOCK_KEPT_MAX: Duration = Duration::from_secs(1);
/// Under load, a batch that no caller waits for stays open this many times longer, because calls become cheaper the
/// more of them share a batch.
const UNAWAITED_FACTOR: u32 = 10;

/// Whether callers wait for a batch to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaited {
    No,
    BySome,
    /// Callers wait, all calls that were admitted in this batch have ended, and the disk is quick.
    ByAll,
}

#[derive(Debug)]
pub(crate) struct BatchPolicy {
    /// Whether the last batch with calls had many of them open at the same time.
    loaded: bool,
    /// Whether the next batch is opened before a call arrives, so that calls find a shared batch.
    pub(crate) opens_ahead: bool,
    /// When the lock was last free for a moment.
    lock_freed: Instant,
    /// When the writer last looked whether another process waits for the lock.
    lock_checked: Instant,
    /// Whether the lock is to be left free after this batch.
    frees_lock: bool,
    gather: Duration,
}

impl BatchPolicy {
    pub(crate) fn new(gather: Duration) -> Self {
        let now = Instant::now();
        Self {
            loaded: false,
            opens_ahead: false,
            lock_freed: now,
            lock_checked: now,
            frees_lock: false,
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

    /// The time until which a batch stays open, or `None` if it should be written now. Under load, a batch that only
    /// some of its callers wait for stays open a little longer, so that more calls share it.
    pub(crate) fn open_until(
        &self,
        opened: Instant,
        first_call: Option<Instant>,
        awaited: Awaited,
    ) -> Option<Instant> {
        let is_awaited = awaited != Awaited::No;
        match (self.loaded, awaited) {
            _ if first_call.is_none() && (is_awaited || !self.opens_ahead) => None,
            (true, Awaited::No) => Some(opened + self.gather * UNAWAITED_FACTOR),
            (true, Awaited::BySome) | (false, Awaited::No) => {
                Some(first_call.unwrap_or(opened) + self.gather)
            }
            (_, Awaited::ByAll) | (false, Awaited::BySome) => None,
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

    /// Whether the next batch should begin as soon as this one is committed. `is_wanted` says whether another process
    /// waits for the lock.
    pub(crate) fn starts_next_at_once(
        &mut self,
        now: Instant,
        is_wanted: impl FnOnce() -> bool,
    ) -> bool {
        self.frees_lock = self.opens_ahead && self.should_free_lock(now, is_wanted);
        self.opens_ahead && !self.frees_lock
    }

    fn should_free_lock(&mut self, now: Instant, is_wanted: impl FnOnce() -> bool) -> bool {
        let since = |then: Instant| now.saturating_duration_since(then);
        if since(self.lock_freed) >= LOCK_KEPT_MAX {
            return true;
        }
        if since(self.lock_freed.max(self.lock_checked)) < LOCK_KEPT {
            return false;
        }
        self.lock_checked = now;
        is_wanted()
    }

    /// How long the lock should stay free, counted from `now`.
    pub(crate) fn lock_pause(&mut self, now: Instant) -> Duration {
        let frees_lock = std::mem::take(&mut self.frees_lock) && self.opens_ahead;
        if !self.opens_ahead || frees_lock {
            self.lock_freed = now;
        }
        match (self.loaded, self.opens_ahead) {
            (_, true) if frees_lock => LOCK_FREE,
            (true, false) => GATHER_PAUSE,
            (_, true) | (false, false) => Duration::ZERO,
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
    fn batches_opened_ahead_leave_the_lock_to_processes_that_wait_for_it() {
        for ((loaded, opens_ahead), kept, is_wanted, pause) in [
            ((false, false), 49 * MS, true, Duration::ZERO),
            ((false, false), 50 * MS, true, Duration::ZERO),
            ((true, false), 49 * MS, true, GATHER_PAUSE),
            ((true, true), 49 * MS, true, Duration::ZERO),
            ((true, true), 50 * MS, false, Duration::ZERO),
            ((true, true), 50 * MS, true, LOCK_FREE),
            ((true, true), 999 * MS, false, Duration::ZERO),
            ((true, true), 1000 * MS, false, LOCK_FREE),
        ] {
            let mut policy = policy(loaded, opens_ahead);
            let now = policy.lock_freed + kept;
            assert_eq!(
                policy.starts_next_at_once(now, || is_wanted),
                opens_ahead && pause.is_zero()
            );
            assert_eq!(
                policy.lock_pause(now),
                pause,
                "{loaded} {opens_ahead} {kept:?} {is_wanted}"
            );
            let freed = !opens_ahead || !pause.is_zero();
            assert_eq!(policy.lock_freed == now, freed);
        }
        // A process that polls for the lock cannot miss the time in which it is free.
        assert!(LOCK_FREE > LOCK_STEP);
    }

    #[test]
    fn the_writer_looks_now_and_then_whether_a_process_waits() {
        let mut policy = policy(true, true);
        let mut looked = Vec::new();
        let began = policy.lock_freed;
        for ms in (0..1_000).step_by(10) {
            let now = began + ms * MS;
            assert!(policy.starts_next_at_once(now, || {
                looked.push(ms);
                false
            }));
        }
        assert_eq!(looked, (50..1_000).step_by(50).collect::<Vec<_>>());
    }

    #[test]
    fn a_batch_stays_open_for_company_under_load() {
        use Awaited::{ByAll, BySome, No};
        let opened = Instant::now();
        let call = Some(opened + MS);
        for ((loaded, opens_ahead), first_call, awaited, until) in [
            ((false, false), None, No, None),
            ((false, false), None, BySome, None),
            ((false, false), call, No, Some(2 * MS)),
            ((false, false), call, BySome, None),
            ((false, false), call, ByAll, None),
            ((true, false), None, No, None),
            ((true, true), None, No, Some(10 * MS)),
            ((true, true), None, BySome, None),
            ((true, true), None, ByAll, None),
            ((true, true), call, No, Some(10 * MS)),
            ((true, true), call, BySome, Some(2 * MS)),
            ((true, true), call, ByAll, None),
        ] {
            assert_eq!(
                policy(loaded, opens_ahead).open_until(opened, first_call, awaited),
                until.map(|until| opened + until),
                "{loaded} {opens_ahead} {first_call:?} {awaited:?}"
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
