//! Looks up tasks for their owners.

use bytes::Bytes;
use protocol::Failure;
use store::{KeyHead, StoreError, TaskId};

use crate::engine::Engine;
use crate::failures::try_again_soon;

impl Engine {
    /// The latest snapshot of a task. A task of another wallet and a missing task get the same answer. A failure of the
    /// store is not reported as a missing task (T13).
    pub async fn task(&self, key: &KeyHead, id: &str) -> Result<Bytes, Failure> {
        let id = TaskId::parse(id).map_err(|_| Failure::task_not_found())?;
        let found = self.store.find_task(key.wallet, id).await;
        let found = found.map_err(|error| unavailable(&error))?;
        let task = found.ok_or_else(Failure::task_not_found)?;
        Ok(Bytes::from(task.snapshot))
    }
}

/// The failure that the client gets when the store does not answer.
pub(super) fn unavailable(error: &StoreError) -> Failure {
    tracing::warn!(%error, "tasks could not be looked up");
    try_again_soon("Tasks cannot be looked up now.")
}
