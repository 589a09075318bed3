//! Claims callbacks and records their outcome.

use rusqlite::{Row, params};

use super::lookups::bytes;
use super::transactions::after;
use crate::error::StoreError;
use crate::queue::command::DueWork;
use crate::records::task::{CallbackOutcome, CallbackReport, CallbackRow, Claim};
use crate::records::task_id::TaskId;
use crate::sqlite::writer::ledger::Ledger;

impl Ledger<'_> {
    pub(crate) fn claim_callbacks(&mut self, due: DueWork) -> Result<Vec<CallbackRow>, StoreError> {
        let claim = "UPDATE callbacks SET attempts = attempts + 1, next_at = ?2, claimed_by = ?3 WHERE task IN (
                     SELECT task FROM callbacks WHERE next_at <= ?1 ORDER BY next_at LIMIT ?4) RETURNING task";
        let (until, epoch) = (after(due.now, due.lease), self.epoch.get());
        let claimed = self
            .connection
            .prepare_cached(claim)?
            .query_map(params![due.now.get(), until, epoch, due.count_max], |row| {
                row.get(0)
            })?
            .collect::<rusqlite::Result<Vec<TaskId>>>()?;
        self.books.pending.wrote |= !claimed.is_empty();
        let select = "SELECT c.task, c.attempts, w.id, c.url, c.body FROM callbacks c
                      JOIN wallets w ON w.n = c.wallet WHERE c.task = ?1";
        let mut select = self.connection.prepare_cached(select)?;
        let rows = claimed
            .into_iter()
            .map(|id| select.query_row([id], callback_row));
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    pub(crate) fn report_callback(&mut self, report: &CallbackReport) -> Result<bool, StoreError> {
        let (next_at, outcome, tried) = match report.outcome {
            CallbackOutcome::Delivered => (None, Some("delivered"), true),
            CallbackOutcome::GivenUp => (None, Some("given_up"), true),
            CallbackOutcome::Again { after: pause } => (Some(after(report.now, pause)), None, true),
            CallbackOutcome::NotTried { after: pause } => {
                (Some(after(report.now, pause)), None, false)
            }
        };
        let update = "UPDATE callbacks SET next_at = ?3, outcome = ?4, claimed_by = NULL,
                      attempts = CASE WHEN ?5 THEN attempts ELSE attempts - 1 END
                      WHERE task = ?1 AND attempts = ?2 AND outcome IS NULL";
        let changed = self.connection.prepare_cached(update)?.execute(params![
            report.claim.task,
            report.claim.fence,
            next_at,
            outcome,
            tried,
        ])?;
        Ok(self.wrote(changed))
    }
}

fn callback_row(row: &Row<'_>) -> rusqlite::Result<CallbackRow> {
    Ok(CallbackRow {
        claim: Claim {
            task: row.get(0)?,
            fence: row.get(1)?,
        },
        wallet: row.get(2)?,
        url: row.get(3)?,
        body: bytes(row, 4)?,
    })
}
