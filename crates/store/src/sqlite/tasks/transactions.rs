//! Changes tasks in the ledger's transaction, so that a step of a task and its effect on the hold are written together.

use std::time::Duration;

use ledger::{Rates, UnixMs};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::books::Closed;
use crate::error::{AdmitError, StoreError};
use crate::queue::command::{DueWork, EndedWork, OneTask};
use crate::records::call::{Close, End, IfLost};
use crate::records::ids::{Epoch, HoldId, PriceVersion, WalletId};
use crate::records::task::{
    Claim, ClaimRenewal, NewTask, OpenedTask, TaskAccepted, TaskEnd, TaskPollReport, TaskRow,
    TaskUpstream,
};
use crate::records::task_id::TaskId;
use crate::sqlite::writer::ledger::Ledger;

/// The fencing number of a task's creator.
const FIRST_FENCE: i64 = 1;

/// Columns of a claimed task, for [`task_row`].
const TASK: &str = "t.id, t.fence, w.id, t.hold, t.protocol, t.model, t.price_version, t.bound, t.channel, t.upstream_model,
    t.upstream_id, t.memo, t.delivery, t.polls, t.missing, t.missing_since, t.created_at, t.expires_at,
    coalesce((SELECT model FROM price_versions WHERE id = t.price_version), ''),
    coalesce((SELECT card FROM price_versions WHERE id = t.price_version), ''), t.endpoint,
    (SELECT k.id FROM holds h JOIN keys k ON k.n = h.key WHERE h.id = t.hold)";

impl Ledger<'_> {
    /// Writes the row of a task together with its hold. Without the row, the hold would have no owner.
    pub(crate) fn open_task(
        &mut self,
        new: &NewTask,
    ) -> rusqlite::Result<Result<OpenedTask, AdmitError>> {
        let now = new.admit.now;
        let key = new.admit.key;
        let (hold, rates) = match self.admit(new.admit)? {
            Ok(admitted) => admitted,
            Err(refused) => return Ok(Err(refused)),
        };
        // A task is reported to its caller only when it is durable, so nothing is charged for a lost hold.
        self.books.pending.inseparable.push(hold);
        let wallet = self.books.rows_of(key).map(|rows| rows.key.wallet);
        match self.insert_task(new, hold, wallet, now) {
            Ok(()) => Ok(Ok(opened(new.id, hold, rates))),
            Err(error) => {
                let end = End::Released;
                let _ = self.books.close(Close {
                    hold,
                    end,
                    now,
                    if_lost: IfLost::Charge,
                });
                Err(error)
            }
        }
    }

    fn insert_task(
        &mut self,
        new: &NewTask,
        hold: HoldId,
        wallet: Option<i64>,
        now: UnixMs,
    ) -> rusqlite::Result<()> {
        let insert = "INSERT INTO tasks (id, wallet, hold, protocol, model, price_version, bound, memo, callback_url,
                      status, progress, snapshot, created_at, expires_at, next_at, fence, claimed_by, endpoint)
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)";
        self.connection.prepare_cached(insert)?.execute(params![
            new.id,
            wallet,
            hold.get(),
            new.protocol,
            new.model,
            new.price_version.get(),
            // A meter consists of numbers and names, so it always has a JSON form.
            serde_json::to_string(&new.bound).unwrap_or_default(),
            new.memo,
            new.callback_url,
            new.running_state.status,
            new.running_state.progress,
            new.running_state.snapshot,
            now.get(),
            after(now, new.lifetime),
            after(now, new.lease),
            FIRST_FENCE,
            self.epoch.get(),
            new.endpoint,
        ])?;
        self.books.pending.wrote = true;
        Ok(())
    }

    pub(crate) fn accept_task(&mut self, accepted: &TaskAccepted) -> Result<bool, StoreError> {
        let update = "UPDATE tasks SET channel = ?3, upstream_model = ?4, upstream_id = ?5, next_at = ?6, claimed_by = NULL
                      WHERE id = ?1 AND fence = ?2 AND ended_at IS NULL";
        let changed = self.connection.prepare_cached(update)?.execute(params![
            accepted.claim.task,
            accepted.claim.fence,
            accepted.upstream.channel,
            accepted.upstream.model,
            accepted.upstream.id,
            after(accepted.now, accepted.next_in),
        ])?;
        Ok(self.wrote(changed))
    }

    pub(crate) fn refuse_task(&mut self, claim: Claim, now: UnixMs) -> Result<bool, StoreError> {
        let Some(hold) = self.hold_of_task(claim)? else {
            return Ok(false);
        };
        self.close_with_task(hold, End::Released, now)?;
        let delete = "DELETE FROM tasks WHERE id = ?1";
        let changed = self
            .connection
            .prepare_cached(delete)?
            .execute([claim.task])?;
        Ok(self.wrote(changed))
    }

    pub(crate) fn renew_claim(&mut self, renewal: &ClaimRenewal) -> Result<bool, StoreError> {
        let update = "UPDATE tasks SET next_at = ?3, delivery = coalesce(?4, delivery), channel = coalesce(?5, channel),
                      upstream_model = coalesce(?6, upstream_model), upstream_id = coalesce(?7, upstream_id)
                      WHERE id = ?1 AND fence = ?2 AND ended_at IS NULL";
        let upstream = renewal.upstream.as_ref();
        let changed = self.connection.prepare_cached(update)?.execute(params![
            renewal.claim.task,
            renewal.claim.fence,
            after(renewal.now, renewal.lease),
            renewal.delivery,
            upstream.map(|upstream| &upstream.channel),
            upstream.map(|upstream| &upstream.model),
            upstream.map(|upstream| &upstream.id),
        ])?;
        Ok(self.wrote(changed))
    }

    pub(crate) fn report_task_poll(&mut self, report: &TaskPollReport) -> Result<bool, StoreError> {
        let update = "UPDATE tasks SET status = coalesce(?7, status), progress = coalesce(?8, progress),
                      snapshot = coalesce(?3, snapshot), next_at = ?4, polls = polls + 1, claimed_by = NULL,
                      missing = CASE WHEN ?5 THEN missing + 1 ELSE 0 END,
                      missing_since = CASE WHEN ?5 THEN coalesce(missing_since, ?6) END
                      WHERE id = ?1 AND fence = ?2 AND ended_at IS NULL";
        let running_state = report.running_state.as_ref();
        let changed = self.connection.prepare_cached(update)?.execute(params![
            report.claim.task,
            report.claim.fence,
            running_state.map(|running_state| &running_state.snapshot),
            after(report.now, report.next_in),
            report.missing,
            report.now.get(),
            running_state.map(|running_state| &running_state.status),
            running_state.and_then(|running_state| running_state.progress),
        ])?;
        Ok(self.wrote(changed))
    }

    pub(crate) fn end_task(&mut self, ended: TaskEnd) -> Result<bool, StoreError> {
        let claim = ended.claim;
        let Some(hold) = self.hold_of_task(claim)? else {
            return Ok(false);
        };
        // The close comes first. If it cannot be booked, the task does not change.
        self.close_with_task(hold, ended.end, ended.now)?;
        let update = "UPDATE tasks SET status = ?2, snapshot = ?3, next_at = NULL, claimed_by = NULL, delivery = NULL, ended_at = ?4
                      WHERE id = ?1";
        let changed = self.connection.prepare_cached(update)?.execute(params![
            claim.task,
            ended.status,
            ended.snapshot,
            ended.now.get()
        ])?;
        let call_back = "INSERT INTO callbacks (task, wallet, url, body, next_at)
                         SELECT id, wallet, callback_url, snapshot, ended_at FROM tasks
                         WHERE id = ?1 AND callback_url IS NOT NULL";
        self.connection
            .prepare_cached(call_back)?
            .execute([claim.task])?;
        Ok(self.wrote(changed))
    }

    pub(crate) fn claim_tasks(&mut self, due: DueWork) -> Result<Vec<TaskRow>, StoreError> {
        let claim = "UPDATE tasks SET fence = fence + 1, next_at = ?2, claimed_by = ?3 WHERE id IN (
                     SELECT id FROM tasks WHERE next_at <= ?1 ORDER BY next_at LIMIT ?4) RETURNING id";
        let (until, epoch) = (after(due.now, due.lease), self.epoch.get());
        let claimed = self
            .connection
            .prepare_cached(claim)?
            .query_map(params![due.now.get(), until, epoch, due.count_max], |row| {
                row.get(0)
            })?
            .collect::<rusqlite::Result<Vec<TaskId>>>()?;
        self.books.pending.wrote |= !claimed.is_empty();
        let select =
            format!("SELECT {TASK} FROM tasks t JOIN wallets w ON w.n = t.wallet WHERE t.id = ?1");
        let mut select = self.connection.prepare_cached(&select)?;
        let rows = claimed
            .into_iter()
            .map(|id| select.query_row([id], |row| task_row(row, due.now)));
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    pub(crate) fn claim_task(&mut self, one: OneTask) -> Result<Option<TaskRow>, StoreError> {
        let claim = "UPDATE tasks SET fence = fence + 1, next_at = ?3, claimed_by = ?4
                     WHERE id = ?1 AND ended_at IS NULL AND wallet = (SELECT n FROM wallets WHERE id = ?2)";
        let (until, epoch) = (after(one.now, one.lease), self.epoch.get());
        let changed = self
            .connection
            .prepare_cached(claim)?
            .execute(params![one.task, one.wallet, until, epoch])?;
        if !self.wrote(changed) {
            return Ok(None);
        }
        let select =
            format!("SELECT {TASK} FROM tasks t JOIN wallets w ON w.n = t.wallet WHERE t.id = ?1");
        let mut select = self.connection.prepare_cached(&select)?;
        Ok(Some(
            select.query_row([one.task], |row| task_row(row, one.now))?,
        ))
    }

    pub(crate) fn hide_task(
        &mut self,
        wallet: WalletId,
        task: TaskId,
        now: UnixMs,
    ) -> Result<bool, StoreError> {
        let update = "UPDATE tasks SET hidden_at = ?3 WHERE id = ?1 AND wallet = (SELECT n FROM wallets WHERE id = ?2)
                      AND ended_at IS NOT NULL AND hidden_at IS NULL";
        let changed =
            self.connection
                .prepare_cached(update)?
                .execute(params![task, wallet, now.get()])?;
        Ok(self.wrote(changed))
    }

    /// Deletes old tasks, except those whose callback is still pending.
    pub(crate) fn forget_tasks(&mut self, old: EndedWork) -> Result<u64, StoreError> {
        let select = "SELECT id FROM tasks t WHERE ended_at <= ?1 AND NOT EXISTS (
                      SELECT 1 FROM callbacks c WHERE c.task = t.id AND c.next_at IS NOT NULL)
                      ORDER BY ended_at LIMIT ?2";
        let before = old.now.get().saturating_sub(after(UnixMs::new(0), old.age));
        let ids = self
            .connection
            .prepare_cached(select)?
            .query_map(params![before, old.count_max], |row| row.get(0))?
            .collect::<rusqlite::Result<Vec<TaskId>>>()?;
        for delete in [
            "DELETE FROM callbacks WHERE task = ?1",
            "DELETE FROM tasks WHERE id = ?1",
        ] {
            let mut delete = self.connection.prepare_cached(delete)?;
            for id in &ids {
                delete.execute([id])?;
            }
        }
        self.wrote(ids.len());
        Ok(ids.len() as u64)
    }

    /// The hold of an open task that is claimed by `claim`.
    fn hold_of_task(&self, claim: Claim) -> rusqlite::Result<Option<HoldId>> {
        let select = "SELECT hold FROM tasks WHERE id = ?1 AND fence = ?2 AND ended_at IS NULL";
        self.connection
            .prepare_cached(select)?
            .query_row(params![claim.task, claim.fence], |row| {
                row.get(0).map(HoldId::new)
            })
            .optional()
    }

    /// Closes a hold together with its task. If the transaction fails, both are rolled back.
    fn close_with_task(&mut self, hold: HoldId, end: End, now: UnixMs) -> Result<(), StoreError> {
        let closing = Close {
            hold,
            end,
            now,
            if_lost: IfLost::Charge,
        };
        self.books.pending.inseparable.push(hold);
        match self.close(closing).map_err(|unread| unread.1)? {
            Closed::Booked => Ok(()),
            Closed::Late => {
                self.books.counters.late_closes.add(1);
                Ok(())
            }
            Closed::Unbookable(_) => {
                tracing::error!(%hold, "a task's hold could not be closed: the stored amounts do not contain it");
                Err(StoreError::Overflow)
            }
        }
    }

    pub(crate) fn wrote(&mut self, changed: usize) -> bool {
        self.books.pending.wrote |= changed > 0;
        changed > 0
    }
}

/// Voids the claims of earlier starts when a server starts, so that their work continues at once.
pub(crate) fn void_claims(on: &Connection, epoch: Epoch, now: UnixMs) -> rusqlite::Result<()> {
    for table in ["tasks", "callbacks", "alert_deliveries"] {
        let void = format!(
            "UPDATE {table} SET next_at = min(next_at, ?2), claimed_by = NULL WHERE next_at IS NOT NULL
             AND claimed_by IS NOT NULL AND claimed_by < ?1"
        );
        on.execute(&void, params![epoch.get(), now.get()])?;
    }
    Ok(())
}

fn opened(task: TaskId, hold: HoldId, rates: Rates) -> OpenedTask {
    let fence = FIRST_FENCE;
    OpenedTask {
        claim: Claim { task, fence },
        hold,
        rates,
    }
}

fn task_row(row: &Row<'_>, now: UnixMs) -> rusqlite::Result<TaskRow> {
    let bound: String = row.get(7)?;
    Ok(TaskRow {
        claim: Claim {
            task: row.get(0)?,
            fence: row.get(1)?,
        },
        wallet: row.get(2)?,
        key: row.get(21)?,
        hold: HoldId::new(row.get(3)?),
        protocol: row.get(4)?,
        endpoint: row.get(20)?,
        model: row.get(5)?,
        price_version: PriceVersion::new(
            row.get(6)?,
            row.get_ref(18)?.as_str()?,
            row.get_ref(19)?.as_str()?,
        ),
        bound: serde_json::from_str(&bound).unwrap_or_default(),
        upstream: upstream(row, 8)?,
        memo: row.get(11)?,
        delivery: row.get(12)?,
        polls: row.get(13)?,
        missing: row.get(14)?,
        missing_since: row.get::<_, Option<i64>>(15)?.map(UnixMs::new),
        created_at: UnixMs::new(row.get(16)?),
        expires_at: UnixMs::new(row.get(17)?),
        claimed_at: now,
    })
}

/// Reads the upstream of a task from three columns that start at `first`.
pub(crate) fn upstream(row: &Row<'_>, first: usize) -> rusqlite::Result<Option<TaskUpstream>> {
    let columns = (row.get(first)?, row.get(first + 1)?, row.get(first + 2)?);
    Ok(match columns {
        (Some(channel), Some(model), Some(id)) => Some(TaskUpstream { channel, model, id }),
        _ => None,
    })
}

pub(crate) fn after(now: UnixMs, pause: Duration) -> i64 {
    now.get()
        .saturating_add(i64::try_from(pause.as_millis()).unwrap_or(i64::MAX))
}
