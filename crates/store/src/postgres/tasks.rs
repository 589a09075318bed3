//! Tasks: this database keeps none yet, so none is admitted, due or found.

use ledger::UnixMs;

use super::backend::Postgres;
use crate::error::StoreError;
use crate::ids::WalletId;
use crate::task::TaskView;
use crate::task_id::TaskId;

impl Postgres {
    #[expect(clippy::unused_async, reason = "the verb of every database")]
    pub(crate) async fn find_task(
        &self,
        _: WalletId,
        _: TaskId,
    ) -> Result<Option<TaskView>, StoreError> {
        Ok(None)
    }

    #[expect(clippy::unused_async, reason = "the verb of every database")]
    pub(crate) async fn has_due_tasks(&self, _: UnixMs) -> Result<bool, StoreError> {
        Ok(false)
    }

    #[expect(clippy::unused_async, reason = "the verb of every database")]
    pub(crate) async fn has_due_callbacks(&self, _: UnixMs) -> Result<bool, StoreError> {
        Ok(false)
    }
}
