//! Writes the start and end of alerts, the signals of this node, and deliveries.

use std::sync::Arc;
use std::time::Duration;

use ledger::UnixMs;
use rusqlite::{OptionalExtension as _, params};

use super::lookups::{ALERT, ALERT_COLUMNS, BEGINNING_IS_DONE, alert_row};
use crate::error::StoreError;
use crate::queue::command::{AlertCommand, DueWork, EndedWork};
use crate::queue::durable::Batch;
use crate::records::alerts::{
    AlertEvent, AlertSignal, CLAIMS_PER_RULE, DeliveryClaim, DeliveryReport, DeliveryRow, NewAlert,
    Webhook,
};
use crate::records::ids::AlertId;
use crate::sqlite::tasks::transactions::after;
use crate::sqlite::writer::apply::answer;
use crate::sqlite::writer::ledger::Ledger;

impl Ledger<'_> {
    pub(crate) fn alert(&mut self, command: AlertCommand, batch: &Arc<Batch>) {
        match command {
            // No other server uses the file, so this node always checks for alerts.
            AlertCommand::LeaseChecks(_, reply) => answer(reply, Ok(true), batch),
            AlertCommand::Signal {
                signals,
                lasting,
                now,
                reply,
            } => {
                let set = self.atomically(|it| it.set_signals(&signals, lasting, now));
                answer(reply, set, batch);
            }
            AlertCommand::Begin(new, now, reply) => {
                let begun = self.atomically(|ledger| ledger.begin_alert(&new, now));
                answer(reply, begun, batch);
            }
            AlertCommand::End(id, now, reply) => {
                let ended = self.atomically(|ledger| ledger.end_alert(id, now));
                answer(reply, ended, batch);
            }
            AlertCommand::Claim(due, reply) => {
                let claimed = self.atomically(|ledger| ledger.claim_deliveries(due));
                answer(reply, claimed, batch);
            }
            AlertCommand::ReportDelivery(report, reply) => {
                answer(reply, self.report_delivery(&report), batch);
            }
            AlertCommand::Forget(old, reply) => {
                let forgotten = self.atomically(|ledger| ledger.forget_alerts(old));
                answer(reply, forgotten, batch);
            }
        }
    }

    fn set_signals(
        &mut self,
        signals: &[AlertSignal],
        lasting: Duration,
        now: UnixMs,
    ) -> Result<(), StoreError> {
        let node = self.epoch.get();
        // Also deletes the rows of earlier starts, because no other server uses the file.
        let gone = self.connection.execute("DELETE FROM alert_signals", [])?;
        let insert = "INSERT INTO alert_signals (node, condition, kind, subject, message, until)
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let mut insert = self.connection.prepare_cached(insert)?;
        for signal in signals {
            insert.execute(params![
                node,
                signal.condition,
                signal.kind.as_str(),
                signal.subject,
                signal.message,
                after(now, lasting),
            ])?;
        }
        drop(insert);
        self.wrote(gone + signals.len());
        Ok(())
    }

    fn begin_alert(&mut self, new: &NewAlert, now: UnixMs) -> Result<bool, StoreError> {
        let insert = "INSERT INTO alerts (id, kind, condition, subject, wallet, message, at)
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING";
        let begun = self.connection.prepare_cached(insert)?.execute(params![
            new.id,
            new.kind.as_str(),
            new.condition,
            new.subject,
            new.wallet,
            new.message,
            now.get(),
        ])?;
        if begun == 0 {
            return Ok(false);
        }
        let alert = self.connection.last_insert_rowid();
        let queue = "INSERT INTO alert_deliveries (alert, rule, event, next_at)
                     SELECT ?1, n, 'begin', ?3 FROM alert_rules WHERE id = ?2";
        let mut queue = self.connection.prepare_cached(queue)?;
        for rule in &new.rules {
            queue.execute(params![alert, rule, now.get()])?;
        }
        drop(queue);
        Ok(self.wrote(begun))
    }

    fn end_alert(&mut self, id: AlertId, now: UnixMs) -> Result<bool, StoreError> {
        let update =
            "UPDATE alerts SET ended_at = ?2 WHERE id = ?1 AND ended_at IS NULL RETURNING n";
        let ended: Option<i64> = self
            .connection
            .prepare_cached(update)?
            .query_row(params![id, now.get()], |row| row.get(0))
            .optional()?;
        let Some(alert) = ended else {
            return Ok(false);
        };
        let queue = "INSERT INTO alert_deliveries (alert, rule, event, next_at)
                     SELECT alert, rule, 'end', ?2 FROM alert_deliveries WHERE alert = ?1 AND event = 'begin'";
        self.connection
            .prepare_cached(queue)?
            .execute(params![alert, now.get()])?;
        Ok(self.wrote(1))
    }

    fn claim_deliveries(&mut self, due: DueWork) -> Result<Vec<DeliveryRow>, StoreError> {
        let claimed = self.due_deliveries(due)?;
        let claim = "UPDATE alert_deliveries SET attempts = attempts + 1, next_at = ?2, claimed_by = ?3 WHERE n = ?1";
        let mut claim = self.connection.prepare_cached(claim)?;
        for number in &claimed {
            let values = params![number, after(due.now, due.lease), self.epoch.get()];
            claim.execute(values)?;
        }
        drop(claim);
        self.wrote(claimed.len());
        let select = format!(
            "SELECT {ALERT}, e.n, e.attempts, e.event, r.id, r.url, r.secret FROM alert_deliveries e
             JOIN alerts a ON a.n = e.alert JOIN alert_rules r ON r.n = e.rule WHERE e.n = ?1"
        );
        let mut select = self.connection.prepare_cached(&select)?;
        let rows = claimed.into_iter().map(|number| {
            select.query_row([number], |row| {
                Ok(DeliveryRow {
                    alert: alert_row(row, 0)?,
                    claim: DeliveryClaim {
                        number: row.get(ALERT_COLUMNS)?,
                        attempt: row.get(ALERT_COLUMNS + 1)?,
                    },
                    event: AlertEvent::stored(row.get_ref(ALERT_COLUMNS + 2)?.as_str()?),
                    rule: row.get(ALERT_COLUMNS + 3)?,
                    webhook: Webhook {
                        url: row.get(ALERT_COLUMNS + 4)?,
                        secret: row.get(ALERT_COLUMNS + 5)?,
                    },
                })
            })
        });
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The oldest deliveries that are due, with a limit for each rule.
    fn due_deliveries(&self, due: DueWork) -> Result<Vec<i64>, StoreError> {
        // A claim ends with its lease, so only claims of the last lease time are counted.
        let free = "SELECT r.n, ?3 - (SELECT count(*) FROM alert_deliveries c WHERE c.rule = r.n
                    AND c.next_at > ?1 AND c.next_at <= ?2 AND c.claimed_by IS NOT NULL) FROM alert_rules r";
        let until = after(due.now, due.lease);
        let mut free = self.connection.prepare_cached(free)?;
        let free = free
            .query_map(params![due.now.get(), until, CLAIMS_PER_RULE], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?
            .collect::<rusqlite::Result<Vec<(i64, i64)>>>()?;
        let select = format!(
            "SELECT d.next_at, d.n FROM alert_deliveries d WHERE d.rule = ?1 AND d.next_at <= ?2
             AND {BEGINNING_IS_DONE} ORDER BY d.next_at LIMIT ?3"
        );
        let mut select = self.connection.prepare_cached(&select)?;
        let mut found: Vec<(i64, i64)> = Vec::new();
        for (rule, count_max) in free {
            // SQLite treats a negative limit as no limit.
            let values = params![rule, due.now.get(), count_max.max(0)];
            let rows = select.query_map(values, |row| Ok((row.get(0)?, row.get(1)?)))?;
            for row in rows {
                found.push(row?);
            }
        }
        found.sort_unstable();
        found.truncate(due.count_max as usize);
        Ok(found.into_iter().map(|(_, number)| number).collect())
    }

    fn report_delivery(&mut self, report: &DeliveryReport) -> Result<bool, StoreError> {
        let (pause, outcome, problem) = report.outcome.columns();
        let update =
            "UPDATE alert_deliveries SET next_at = ?3, outcome = ?4, problem = ?5, tried_at = ?6,
                      claimed_by = NULL WHERE n = ?1 AND attempts = ?2 AND outcome IS NULL";
        let changed = self.connection.prepare_cached(update)?.execute(params![
            report.claim.number,
            report.claim.attempt,
            pause.map(|pause| after(report.now, pause)),
            outcome,
            problem,
            report.now.get(),
        ])?;
        Ok(self.wrote(changed))
    }

    /// Deletes alerts that ended long ago, except those with a delivery that is still pending.
    fn forget_alerts(&mut self, old: EndedWork) -> Result<u64, StoreError> {
        let select = "SELECT n FROM alerts a WHERE ended_at <= ?1 AND NOT EXISTS (
                      SELECT 1 FROM alert_deliveries d WHERE d.alert = a.n AND d.next_at IS NOT NULL)
                      ORDER BY ended_at LIMIT ?2";
        let before = old.now.get().saturating_sub(after(UnixMs::new(0), old.age));
        let numbers = self
            .connection
            .prepare_cached(select)?
            .query_map(params![before, old.count_max], |row| row.get(0))?
            .collect::<rusqlite::Result<Vec<i64>>>()?;
        for delete in [
            "DELETE FROM alert_deliveries WHERE alert = ?1",
            "DELETE FROM alerts WHERE n = ?1",
        ] {
            let mut delete = self.connection.prepare_cached(delete)?;
            for number in &numbers {
                delete.execute([number])?;
            }
        }
        self.wrote(numbers.len());
        Ok(numbers.len() as u64)
    }
}
