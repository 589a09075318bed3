//! Probes the media storage at intervals.

use std::time::Duration;

use super::storage_health::StorageState;
use crate::engine::Engine;

/// The pause between two probes.
const PROBE_EVERY: Duration = Duration::from_secs(15);

impl Engine {
    /// The result of the last probe of the media storage.
    pub fn storage_state(&self) -> StorageState {
        self.storage_watch.get()
    }

    /// Probes the media storage immediately and then at intervals, for as long as the future is
    /// polled.
    pub async fn watch_storage(&self) {
        loop {
            self.probe_storage().await;
            tokio::time::sleep(PROBE_EVERY).await;
        }
    }

    async fn probe_storage(&self) {
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
