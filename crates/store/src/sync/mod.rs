//! Locks, atomics, time and tasks of the ledger's writer.
//!
//! They are those of the standard library, `parking_lot` and `tokio`. In the tests of schedules (feature
//! `schedules`) they belong to a checker that decides which thread runs next, when time passes and
//! where a fault strikes.

#[cfg(all(test, feature = "schedules"))]
pub(crate) mod checked;
#[cfg(not(all(test, feature = "schedules")))]
mod real;

#[cfg(all(test, feature = "schedules"))]
pub(crate) use checked::{
    AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Condvar, Handle, Instant, Mutex, MutexGuard,
    RuntimeId, fault_point, sleep, timeout,
};
#[cfg(not(all(test, feature = "schedules")))]
pub(crate) use real::{
    AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Condvar, Handle, Instant, Mutex, MutexGuard,
    RuntimeId, fault_point, sleep, timeout,
};

/// A place in the writer's work where the checker may have a thread panic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FaultPoint {
    /// A transaction has begun.
    Begun,
    /// What was queued has been decided on.
    Decided,
    /// The decisions were taken out of the open books and are about to be written.
    BatchTaken,
    /// They are committed, and nobody has been told.
    Committed,
    /// The log is about to be synced.
    Syncing,
}
