//! Deletes the rows of tasks that ended long ago. Their entries stay in the ledger.

use std::sync::Arc;
use std::time::Duration;

use crate::clock;
use crate::engine::Engine;

/// How often we look for old tasks.
const LOOK_EVERY: Duration = Duration::from_secs(600);
/// The maximum number of tasks per transaction, so that no transaction delays the ledger.
const STEP_MAX: u32 = 500;

impl Engine {
    /// Deletes old tasks for as long as the future is polled.
    pub async fn forget_tasks(self: Arc<Self>) {
        let age = self.settings.tasks.retention;
        loop {
            match self
                .store
                .forget_tasks(age, STEP_MAX, clock::steady())
                .await
            {
                Ok(forgotten) if forgotten >= u64::from(STEP_MAX) => continue,
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "old tasks could not be deleted"),
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
