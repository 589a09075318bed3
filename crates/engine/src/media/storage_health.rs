//! The state of the media storage, as of its last probe.

use std::sync::atomic::{AtomicU8, Ordering};

/// The result of the last probe of the media storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageState {
    /// There was no probe yet.
    Unknown,
    Ok,
    Failing,
}

impl StorageState {
    /// The value in the readiness report.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Ok => "ok",
            Self::Failing => "failing",
        }
    }
}

/// The last state, readable from any thread.
#[derive(Debug, Default)]
pub(crate) struct StorageWatch(AtomicU8);

impl StorageWatch {
    pub(crate) fn get(&self) -> StorageState {
        match self.0.load(Ordering::Relaxed) {
            0 => StorageState::Unknown,
            1 => StorageState::Ok,
            _ => StorageState::Failing,
        }
    }

    /// Stores a state and returns the previous one.
    pub(super) fn set(&self, state: StorageState) -> StorageState {
        let before = self.get();
        self.0.store(state as u8, Ordering::Relaxed);
        before
    }
}
