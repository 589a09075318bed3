//! Deletes media after their retention time.

use crate::clock;
use crate::engine::Engine;

impl Engine {
    /// Deletes expired media at intervals for as long as the future is polled. Other nodes may do
    /// the same.
    pub async fn sweep_media(&self) {
        loop {
            let counts = &self.metrics().media;
            match self.media.sweep(clock::now()).await {
                Ok(found) => {
                    counts.swept(&found);
                    tracing::debug!(?found, "expired media were deleted");
                }
                Err(error) => {
                    counts.sweep_failed();
                    tracing::warn!(%error, "expired media could not be deleted");
                }
            }
            tokio::time::sleep(self.settings.media.sweep_every).await;
        }
    }
}
