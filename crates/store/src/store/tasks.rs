//! Operations on tasks and callbacks. Their results are durable when they return.

use std::time::Duration;

use ledger::UnixMs;
use tokio::sync::oneshot;

use crate::backend::{Backend, on};
use crate::clock;
use crate::error::{AdmitError, StoreError};
use crate::queue::command::{Command, DueWork, EndedWork, OneTask, TaskCommand};
use crate::records::ids::WalletId;
use crate::records::task::{
    CallbackReport, CallbackRow, Claim, ClaimRenewal, NewTask, OpenedTask, TaskAccepted, TaskEnd,
    TaskPollReport, TaskRow, TaskView,
};
use crate::records::task_id::TaskId;
use crate::records::task_list::{TaskPage, TaskQuery};
use crate::stats::Backlog;
use crate::store::{Store, found_in_time};

/// Tasks. A step returns `false`, and has written nothing, if another node has claimed the task or the task has ended.
impl Store {
    /// Decides on a task as on a call, and writes its row with its hold. The hold belongs to the task and ends with the
    /// task, even if this process ends earlier.
    pub async fn open_task(&self, new: NewTask) -> Result<OpenedTask, AdmitError> {
        on!(self, backend => backend.may_admit())?;
        let (reply, answer) = oneshot::channel();
        let command = Command::Task(TaskCommand::Open(Box::new(new), reply));
        self.backend.push(command).await?;
        let (opened, durable) = answer.await.map_err(|_| AdmitError::Unavailable)??;
        durable.wait().await.map_err(|_| AdmitError::Unavailable)?;
        Ok(opened)
    }

    /// Records which upstream has accepted a task, and when to poll it first.
    pub async fn accept_task(&self, accepted: TaskAccepted) -> Result<bool, StoreError> {
        self.step(|reply| TaskCommand::Accept(Box::new(accepted), reply))
            .await
    }

    /// Removes a task that no upstream has accepted: releases the hold and deletes the row.
    pub async fn refuse_task(&self, claim: Claim, now: UnixMs) -> Result<bool, StoreError> {
        self.step(|reply| TaskCommand::Refuse(claim, now, reply))
            .await
    }

    /// Extends the claim of a worker, and stores the worker's results so far.
    pub async fn renew_claim(&self, renewal: ClaimRenewal) -> Result<bool, StoreError> {
        self.step(|reply| TaskCommand::RenewClaim(Box::new(renewal), reply))
            .await
    }

    /// Records the result of a poll of a task that has not ended.
    pub async fn report_task_poll(&self, report: TaskPollReport) -> Result<bool, StoreError> {
        self.step(|reply| TaskCommand::ReportPoll(Box::new(report), reply))
            .await
    }

    /// Ends a task: closes its hold, stores its final snapshot, and queues its callback. A task ends only once.
    pub async fn end_task(&self, end: TaskEnd) -> Result<bool, StoreError> {
        self.step(|reply| TaskCommand::End(Box::new(end), reply))
            .await
    }

    /// Claims due tasks. No other node gets them within `lease`.
    pub async fn claim_tasks(
        &self,
        count_max: u32,
        lease: Duration,
        now: UnixMs,
    ) -> Result<Vec<TaskRow>, StoreError> {
        if let Backend::Sqlite(sqlite) = &self.backend
            && !sqlite.has_due_tasks(now).await?
        {
            return Ok(Vec::new());
        }
        let due = DueWork {
            count_max,
            lease,
            now,
        };
        let rows: Vec<TaskRow> = self.step(|reply| TaskCommand::Claim(due, reply)).await?;
        for row in &rows {
            self.name_price(row);
        }
        Ok(rows)
    }

    /// Claims one open task of this wallet, even if another node has claimed it. Later writes of that node then fail.
    pub async fn claim_task(
        &self,
        wallet: WalletId,
        task: TaskId,
        lease: Duration,
        now: UnixMs,
    ) -> Result<Option<TaskRow>, StoreError> {
        let one = OneTask {
            wallet,
            task,
            lease,
            now,
        };
        let row: Option<TaskRow> = self.step(|reply| TaskCommand::ClaimOne(one, reply)).await?;
        if let Some(row) = &row {
            self.name_price(row);
        }
        Ok(row)
    }

    /// Registers the model of the task's price version for the sums of settled calls, because this process may never
    /// have loaded that version.
    fn name_price(&self, row: &TaskRow) {
        self.counters().settled.name(row.price_version, &row.model);
    }

    /// Hides an ended task from its owner. Its charge and its pending callback are not affected.
    pub async fn hide_task(
        &self,
        wallet: WalletId,
        task: TaskId,
        now: UnixMs,
    ) -> Result<bool, StoreError> {
        self.step(|reply| TaskCommand::Hide(wallet, task, now, reply))
            .await
    }

    /// Deletes at most `count_max` tasks that ended longer than `age` ago. Returns how many were deleted.
    pub async fn forget_tasks(
        &self,
        age: Duration,
        count_max: u32,
        now: UnixMs,
    ) -> Result<u64, StoreError> {
        let old = EndedWork {
            age,
            count_max,
            now,
        };
        self.step(|reply| TaskCommand::Forget(old, reply)).await
    }

    /// Lists tasks, newest first.
    pub async fn tasks(&self, query: TaskQuery) -> Result<TaskPage, StoreError> {
        on!(self, backend => backend.tasks(query).await)
    }

    /// The number of waiting callbacks and the age of the oldest open hold, read from the database.
    pub async fn backlog(&self) -> Result<Backlog, StoreError> {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.backlog(clock::now()).await,
            Backend::Postgres(postgres) => postgres.backlog().await,
        }
    }

    /// The channels of open tasks, with the number of tasks on each.
    pub async fn task_channels(&self) -> Result<Vec<(Box<str>, u64)>, StoreError> {
        on!(self, backend => backend.task_channels().await)
    }

    /// Claims due callbacks. The attempt counts from now on.
    pub async fn claim_callbacks(
        &self,
        count_max: u32,
        lease: Duration,
        now: UnixMs,
    ) -> Result<Vec<CallbackRow>, StoreError> {
        if let Backend::Sqlite(sqlite) = &self.backend
            && !sqlite.has_due_callbacks(now).await?
        {
            return Ok(Vec::new());
        }
        let due = DueWork {
            count_max,
            lease,
            now,
        };
        self.step(|reply| TaskCommand::ClaimCallbacks(due, reply))
            .await
    }

    /// Records the outcome of a callback attempt.
    pub async fn report_callback(&self, report: CallbackReport) -> Result<bool, StoreError> {
        self.step(|reply| TaskCommand::ReportCallback(report, reply))
            .await
    }

    /// Finds a task of this wallet. Tasks of other wallets are not found (T13).
    pub async fn find_task(
        &self,
        wallet: WalletId,
        task: TaskId,
    ) -> Result<Option<TaskView>, StoreError> {
        found_in_time(async { on!(self, backend => backend.find_task(wallet, task).await) }).await
    }

    async fn step<T>(
        &self,
        command: impl FnOnce(crate::queue::command::Reply<T>) -> TaskCommand,
    ) -> Result<T, StoreError> {
        self.ask(|reply| Command::Task(command(reply))).await
    }
}
