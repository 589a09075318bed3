//! The real types.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize};
pub(crate) use std::thread::sleep;
pub(crate) use std::time::Instant;

pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
pub(crate) use tokio::runtime::{Handle, Id as RuntimeId};
pub(crate) use tokio::time::timeout;

use super::FaultPoint;

/// Faults occur only in the schedule tests.
#[inline]
pub(crate) fn fault_point(_: FaultPoint) {}
