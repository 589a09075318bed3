//! Whether the media storage answers.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use crate::engine::Engine;

/// The pause between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// How the media storage answered when it was asked last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageState {
    /// Not asked yet.
    Unknown,
    Ok,
    Failing,
}

impl StorageState {
    /// The word in readiness details.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Ok => "ok",
            Self::Failing => "failing",
        }
    }
}

/// The last state, for readers on any thread.
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

    /// Notes a state and tells the one before.
    fn set(&self, state: StorageState) -> StorageState {
        let before = self.get();
        self.0.store(state as u8, Ordering::Relaxed);
        before
    }
}

impl Engine {
    /// Whether the media storage answered when it was asked last.
    pub fn storage_state(&self) -> StorageState {
        self.storage_watch.get()
    }

    /// Asks the media storage at once and then again and again, for as long as the future is polled.
    pub async fn watch_storage(&self) {
        loop {
            self.look_at_storage().await;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn look_at_storage(&self) {
        let probed = self.media.probe().await;
        let state = match &probed {
            Ok(()) => StorageState::Ok,
            Err(_) => StorageState::Failing,
        };
        let before = self.storage_watch.set(state);
        self.metrics().media.storage_answers(probed.is_ok());
        match probed {
            Err(error) if before != StorageState::Failing => tracing::error!(
                %error,
                "the media storage cannot be used; video tasks wait for it and media are not served"
            ),
            Ok(()) if before == StorageState::Failing => {
                tracing::info!("the media storage answers again");
            }
            _ => {}
        }
    }
}
