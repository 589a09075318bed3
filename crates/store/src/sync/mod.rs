//! The locks, atomics, clock and tasks of the ledger writer.
//!
//! They come from the standard library, `parking_lot` and `tokio`. In the schedule tests (feature `schedules`),
//! a checker replaces them and decides which thread runs next, when time passes and where a fault occurs.

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

/// A point in the writer's work at which the checker may make a thread panic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FaultPoint {
    /// A transaction has begun.
    Begun,
    /// The queued commands have been decided.
    Decided,
    /// The decisions were taken from the shared ledger and are about to be written.
    BatchTaken,
    /// The decisions are committed, but no caller has been notified.
    Committed,
    /// The log is about to be synced.
    Syncing,
}
