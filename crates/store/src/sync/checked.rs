//! Replaces the types of `sync` with types that a schedule checker controls.
//!
//! The checker runs all threads of an execution on one system thread, one at a time. It may switch whenever a thread
//! uses a lock, a condition variable or an atomic. Time is virtual: it advances when a thread sleeps or waits with a
//! deadline, so that an execution depends only on its seed.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::ops::{Add, Deref, DerefMut};
use std::sync::{PoisonError, TryLockError};
use std::time::Duration;

use shuttle::rand::Rng as _;

pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize};

use super::FaultPoint;

thread_local! {
    static NOW_NS: Cell<u64> = const { Cell::new(0) };
    /// Whether a wait with a deadline may end early at random. An exhaustive search has no randomness.
    static BY_CHANCE: Cell<bool> = const { Cell::new(false) };
    /// The fault point at which a thread panics, and the number of visits before that.
    static PANICS: RefCell<Option<(FaultPoint, u32)>> = const { RefCell::new(None) };
    static VISITS: RefCell<BTreeMap<FaultPoint, u64>> = const { RefCell::new(BTreeMap::new()) };
}

/// The number of times that threads have reached each fault point, over all executions so far.
pub(crate) fn visits() -> BTreeMap<FaultPoint, u64> {
    VISITS.with_borrow(Clone::clone)
}

/// Begins an execution: resets the time, and sets the fault point at which a thread panics.
pub(crate) fn begin(by_chance: bool, panics: Option<(FaultPoint, u32)>) {
    NOW_NS.set(1);
    BY_CHANCE.set(by_chance);
    PANICS.set(panics);
}

/// Panics once if the execution was set to panic here.
pub(crate) fn fault_point(point: FaultPoint) {
    VISITS.with_borrow_mut(|visits| *visits.entry(point).or_default() += 1);
    let must_panic = PANICS.with_borrow_mut(|panics| match panics {
        Some((at, 0)) if *at == point => panics.take().is_some(),
        Some((at, left)) if *at == point => {
            *left -= 1;
            false
        }
        _ => false,
    });
    if must_panic {
        // Skips the panic hook, because the panic is expected.
        std::panic::resume_unwind(Box::new(point));
    }
}

/// A point in the virtual time of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant(u64);

impl Instant {
    pub(crate) fn now() -> Self {
        Self(NOW_NS.get())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        Self::now().saturating_duration_since(*self)
    }

    pub(crate) fn saturating_duration_since(&self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(ns))
    }
}

/// Required by code that no execution reaches.
impl From<Instant> for tokio::time::Instant {
    fn from(_: Instant) -> Self {
        Self::now()
    }
}

fn pass_until(then: Instant) {
    NOW_NS.set(NOW_NS.get().max(then.0));
}

pub(crate) fn sleep(time: Duration) {
    pass_until(Instant::now() + time);
    shuttle::thread::yield_now();
}

#[derive(Default)]
pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

pub(crate) struct MutexGuard<'a, T> {
    lock: &'a shuttle::sync::Mutex<T>,
    held: Option<shuttle::sync::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(shuttle::sync::Mutex::new(value))
    }

    /// As with `parking_lot`, a panic does not poison the lock.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        self.guard(held)
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(held) => Some(self.guard(held)),
            Err(TryLockError::Poisoned(poisoned)) => Some(self.guard(poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    pub(crate) fn try_lock_for(&self, time: Duration) -> Option<MutexGuard<'_, T>> {
        sleep(time);
        self.try_lock()
    }

    fn guard<'a>(&'a self, held: shuttle::sync::MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        MutexGuard {
            lock: &self.0,
            held: Some(held),
        }
    }
}

impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mutex")
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.held.as_deref().expect("only a wait takes it out")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.held.as_deref_mut().expect("only a wait takes it out")
    }
}

#[derive(Default)]
pub(crate) struct Condvar(shuttle::sync::Condvar);

/// The outcome of a wait with a deadline.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waited {
    timed_out: bool,
}

impl Waited {
    pub(crate) fn timed_out(self) -> bool {
        self.timed_out
    }
}

impl Condvar {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn notify_one(&self) -> bool {
        self.0.notify_one();
        true
    }

    /// Waits for a notification only, so that the checker reports a missed notification as a deadlock.
    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let held = guard.held.take().expect("only a wait takes it out");
        let woken = self.0.wait(held);
        guard.held = Some(woken.unwrap_or_else(PoisonError::into_inner));
    }

    /// Lets other threads run, and returns at the deadline or spuriously, as a real condition variable may.
    pub(crate) fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, until: Instant) -> Waited {
        drop(guard.held.take());
        shuttle::thread::yield_now();
        guard.held = Some(guard.lock.lock().unwrap_or_else(PoisonError::into_inner));
        let for_nothing = BY_CHANCE.get() && shuttle::rand::thread_rng().gen_bool(0.5);
        if !for_nothing {
            pass_until(until);
        }
        Waited {
            timed_out: Instant::now() >= until,
        }
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Condvar")
    }
}

/// A stand-in for the runtime's handle. All tasks of an execution run on one runtime.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handle;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RuntimeId;

impl Handle {
    pub(crate) fn current() -> Self {
        Self
    }

    pub(crate) fn id(&self) -> RuntimeId {
        RuntimeId
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(shuttle::future::spawn(task));
    }
}

/// Awaits the future. Timeouts never expire in an execution.
pub(crate) async fn timeout<T>(
    _: Duration,
    what: impl Future<Output = T>,
) -> Result<T, Infallible> {
    Ok(what.await)
}
