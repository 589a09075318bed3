//! Deletes tasks: cancels a task that waits, and hides a task that has ended (T12).

use std::sync::Arc;

use protocol::Failure;
use protocol::video::{Deletion, PollResult};
use store::{End, KeyHead, TaskId, TaskRow, TaskUpstream, TaskView, WalletId};

use super::claimed::TaskChanges;
use super::copy_media;
use super::lookup::unavailable;
use super::poll::PollReport;
use super::protocols::TaskProtocol;
use crate::clock;
use crate::engine::Engine;

/// The maximum number of attempts, if the task keeps changing in the meantime.
const LOOKS_MAX: u32 = 3;

enum CancelOutcome {
    Cancelled,
    Running,
    /// The task has changed its state in the meantime.
    Changed,
}

impl Engine {
    /// Deletes a task of the caller. The deletion continues even if the caller leaves.
    pub async fn delete_task(self: &Arc<Self>, key: &KeyHead, id: &str) -> Result<(), Failure> {
        let id = TaskId::parse(id).map_err(|_| Failure::task_not_found())?;
        let (engine, wallet) = (Arc::clone(self), key.wallet);
        let deleted = self
            .tasks
            .spawn(async move { engine.delete(wallet, id).await });
        deleted.await.unwrap_or_else(|_| Err(Failure::internal()))
    }

    async fn delete(self: &Arc<Self>, wallet: WalletId, id: TaskId) -> Result<(), Failure> {
        for _ in 0..LOOKS_MAX {
            let found = self.store.find_task(wallet, id).await;
            let found = found.map_err(|error| unavailable(&error))?;
            let task = found.ok_or_else(Failure::task_not_found)?;
            let protocol =
                TaskProtocol::find(&task.protocol).ok_or_else(Failure::task_not_found)?;
            match protocol.video.deletion(&task.status) {
                // A protocol without deletion has no endpoint at this path.
                Deletion::Unknown => return Err(Failure::task_not_found()),
                Deletion::Running => return Err(refused(Failure::task_running())),
                Deletion::Cancelled => return Err(refused(Failure::task_cancelled())),
                Deletion::Remove => return self.remove(wallet, id, &task, protocol).await,
                // The creation is still running, and its answer must be written first.
                Deletion::Cancel if task.upstream.is_none() => {
                    return Err(refused(Failure::task_running()));
                }
                Deletion::Cancel => match self.cancel_waiting(wallet, id, protocol).await? {
                    CancelOutcome::Cancelled => return Ok(()),
                    CancelOutcome::Running => return Err(refused(Failure::task_running())),
                    CancelOutcome::Changed => {}
                },
            }
        }
        Err(refused(Failure::task_running()))
    }

    /// Deletes the upstream's record of a task that has ended, and hides the task. Its entries, journal row, media and
    /// open callback stay.
    async fn remove(
        &self,
        wallet: WalletId,
        id: TaskId,
        task: &TaskView,
        protocol: TaskProtocol,
    ) -> Result<(), Failure> {
        if let Some(upstream) = &task.upstream {
            // The task is hidden even if the upstream no longer has it or refuses to delete it.
            self.delete_upstream(upstream, protocol).await?;
        }
        let hidden = self.store.hide_task(wallet, id, clock::steady()).await;
        if hidden.map_err(|error| unavailable(&error))? {
            return Ok(());
        }
        // Another request has already hidden the task.
        Err(Failure::task_not_found())
    }

    /// Cancels a task whose last known state is waiting. It is polled first: if it has ended in the meantime, the
    /// cancel request would delete its result.
    async fn cancel_waiting(
        self: &Arc<Self>,
        wallet: WalletId,
        id: TaskId,
        protocol: TaskProtocol,
    ) -> Result<CancelOutcome, Failure> {
        let lease = self.settings.tasks.lease;
        let claimed = self
            .store
            .claim_task(wallet, id, lease, clock::steady())
            .await;
        let Some(mut row) = claimed.map_err(|error| unavailable(&error))? else {
            return Ok(CancelOutcome::Changed);
        };
        let (Some(upstream), Some(endpoint)) = (row.upstream.clone(), protocol.poll) else {
            return Ok(CancelOutcome::Running);
        };
        if row.delivery.is_some() {
            self.continue_in_background(row, protocol, PollReport::unclear());
            return Ok(CancelOutcome::Running);
        }
        let name = row.claim.task.to_string();
        let report = self
            .poll(protocol, endpoint, &upstream, &self.task_of(&row, &name))
            .await;
        match &report.polled {
            PollResult::Running(Some(running_state))
                if protocol.video.deletion(running_state.status) == Deletion::Cancel => {}
            PollResult::Running(_) => {
                self.apply_poll(&mut row, protocol, report).await;
                return Ok(CancelOutcome::Running);
            }
            PollResult::Ended(_) => {
                self.apply_poll(&mut row, protocol, report).await;
                return Ok(CancelOutcome::Changed);
            }
            // Copying the media takes time, so it is done in the background.
            PollResult::Delivered(_) => {
                self.continue_in_background(row, protocol, report);
                return Ok(CancelOutcome::Running);
            }
            PollResult::UnknownTask | PollResult::Unclear => {
                self.apply_poll(&mut row, protocol, report).await;
                return Err(Failure::upstream_error());
            }
        }
        self.cancel_claimed(&row, &upstream, protocol).await
    }

    async fn cancel_claimed(
        &self,
        row: &TaskRow,
        upstream: &TaskUpstream,
        protocol: TaskProtocol,
    ) -> Result<CancelOutcome, Failure> {
        let deleted = self.delete_upstream(upstream, protocol).await;
        let name = row.claim.task.to_string();
        let outcome = protocol.video.write_cancelled(&self.task_of(row, &name));
        match (deleted, outcome) {
            (Ok(true), Some(outcome)) => {
                self.end(row, outcome, End::Released).await;
                Ok(CancelOutcome::Cancelled)
            }
            // The upstream says that the task has started, which the next poll will show.
            (Ok(_), _) => {
                self.save_and_unclaim(row, TaskChanges::soon()).await;
                Ok(CancelOutcome::Running)
            }
            (Err(failure), _) => {
                self.save_and_unclaim(row, TaskChanges::soon()).await;
                Err(failure)
            }
        }
    }

    /// Deletes the upstream's record. Returns `false` if the upstream refuses.
    async fn delete_upstream(
        &self,
        upstream: &TaskUpstream,
        protocol: TaskProtocol,
    ) -> Result<bool, Failure> {
        let Some(endpoint) = protocol.cancel else {
            return Ok(true);
        };
        if self.catalog().channel(&upstream.channel).is_none() {
            return Ok(false);
        }
        match self.ask(endpoint, upstream).await.status() {
            Some(200..=299) => Ok(true),
            Some(429) => Err(Failure::upstream_overloaded()),
            Some(401 | 403 | 408) => Err(Failure::upstream_error()),
            Some(400..=499) => Ok(false),
            _ => Err(Failure::upstream_error()),
        }
    }

    fn continue_in_background(
        self: &Arc<Self>,
        mut row: TaskRow,
        protocol: TaskProtocol,
        report: PollReport,
    ) {
        let engine = Arc::clone(self);
        self.tasks.spawn(async move {
            match copy_media::stored_delivery(&row) {
                Some(delivery) => engine.copy_and_end(&mut row, protocol, delivery).await,
                None => engine.apply_poll(&mut row, protocol, report).await,
            }
        });
    }
}

/// Tells clients not to retry: by default they retry a 409, and would only get it again.
fn refused(failure: Failure) -> Failure {
    failure.should_retry(false)
}
