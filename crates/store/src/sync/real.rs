//! The types that production code uses: those of the standard library, `parking_lot` and `tokio`.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize};
pub(crate) use std::thread::sleep;
pub(crate) use std::time::Instant;

pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
pub(crate) use tokio::runtime::{Handle, Id as RuntimeId};
pub(crate) use tokio::time::timeout;

use super::FaultPoint;

/// Does nothing, because faults occur only in the schedule tests.
#[inline]
pub(crate) fn fault_point(_: FaultPoint) {}
