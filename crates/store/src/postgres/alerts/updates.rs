//! Writes the start and end of alerts, the signals of this node, and deliveries.

use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::lookups::{ALERT, ALERT_COLUMNS, BEGINNING_IS_DONE, alert_row};
use crate::error::StoreError;
use crate::postgres::reads::pool::SharedConnection;
use crate::postgres::tasks::{answer, execute, ms, query};
use crate::queue::command::{AlertCommand, DueWork, EndedWork};
use crate::records::alerts::{
    AlertEvent, AlertSignal, CLAIMS_PER_RULE, DeliveryClaim, DeliveryReport, DeliveryRow, NewAlert,
    Webhook,
};
use crate::records::ids::{AlertId, RuleId};

const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// Runs a command, and answers when its effect is durable.
pub(crate) async fn run(command: AlertCommand, connection: &SharedConnection, epoch: i64) {
    match command {
        AlertCommand::LeaseChecks(lease, reply) => {
            answer(reply, lease_checks(connection, lease, epoch).await);
        }
        AlertCommand::Signal {
            signals,
            lasting,
            reply,
            ..
        } => {
            let set = set_signals(connection, &signals, lasting, epoch).await;
            answer(reply, set);
        }
        AlertCommand::Begin(new, _, reply) => answer(reply, begin(connection, &new).await),
        AlertCommand::End(id, _, reply) => answer(reply, end(connection, id).await),
        AlertCommand::Claim(due, reply) => answer(reply, claim(connection, due, epoch).await),
        AlertCommand::ReportDelivery(report, reply) => {
            answer(reply, report_delivery(connection, &report).await);
        }
        AlertCommand::Forget(old, reply) => answer(reply, forget(connection, old).await),
    }
}

async fn lease_checks(
    connection: &SharedConnection,
    lease: Duration,
    epoch: i64,
) -> Result<bool, StoreError> {
    let take = format!(
        "INSERT INTO alert_watcher AS w (epoch, until) VALUES ($1, {NOW} + $2)
         ON CONFLICT (one) DO UPDATE SET epoch = excluded.epoch, until = excluded.until
         WHERE w.epoch = excluded.epoch OR w.until < {NOW}"
    );
    let taken = execute(connection, &take, &[&epoch, &ms(lease)]).await?;
    Ok(taken > 0)
}

/// Replaces the signals of this node. Also deletes expired rows of other nodes.
async fn set_signals(
    connection: &SharedConnection,
    signals: &[AlertSignal],
    lasting: Duration,
    epoch: i64,
) -> Result<(), StoreError> {
    let column = |of: fn(&AlertSignal) -> Option<&str>| -> Vec<Option<&str>> {
        signals.iter().map(of).collect()
    };
    let conditions = column(|signal| Some(&signal.condition));
    let kinds = column(|signal| Some(signal.kind.as_str()));
    let subjects = column(|signal| signal.subject.as_deref());
    let messages = column(|signal| Some(&signal.message));
    let set = format!(
        "WITH gone AS (DELETE FROM alert_signals WHERE (node = $1 AND condition <> ALL ($3)) OR until < {NOW})
         INSERT INTO alert_signals (node, condition, kind, subject, message, until)
         SELECT $1, s.condition, s.kind, s.subject, s.message, {NOW} + $2
         FROM unnest($3::text[], $4::text[], $5::text[], $6::text[]) AS s (condition, kind, subject, message)
         ON CONFLICT (node, condition) DO UPDATE SET message = excluded.message, until = excluded.until"
    );
    let values: [&(dyn ToSql + Sync); 6] = [
        &epoch,
        &ms(lasting),
        &conditions,
        &kinds,
        &subjects,
        &messages,
    ];
    execute(connection, &set, &values).await.map(drop)
}

async fn begin(connection: &SharedConnection, new: &NewAlert) -> Result<bool, StoreError> {
    let begin = format!(
        "WITH begun AS (INSERT INTO alerts (id, kind, condition, subject, wallet, message, at)
             VALUES ($1, $2, $3, $4, $5, $6, {NOW}) ON CONFLICT DO NOTHING RETURNING n, at),
         queued AS (INSERT INTO alert_deliveries (alert, rule, event, next_at)
             SELECT begun.n, r.n, 'begin', begun.at FROM begun, alert_rules r WHERE r.id = ANY ($7))
         SELECT count(*) FROM begun"
    );
    let wallet = new.wallet.map(|wallet| wallet.to_string());
    let rules: Vec<String> = new.rules.iter().map(RuleId::to_string).collect();
    let values: [&(dyn ToSql + Sync); 7] = [
        &new.id.to_string(),
        &new.kind.as_str(),
        &new.condition,
        &new.subject,
        &wallet,
        &new.message,
        &rules,
    ];
    is_any(&query(connection, &begin, &values).await?)
}

async fn end(connection: &SharedConnection, id: AlertId) -> Result<bool, StoreError> {
    let end = format!(
        "WITH ended AS (UPDATE alerts SET ended_at = {NOW} WHERE id = $1 AND ended_at IS NULL RETURNING n, ended_at),
         queued AS (INSERT INTO alert_deliveries (alert, rule, event, next_at)
             SELECT d.alert, d.rule, 'end', ended.ended_at FROM ended
             JOIN alert_deliveries d ON d.alert = ended.n AND d.event = 'begin')
         SELECT count(*) FROM ended"
    );
    is_any(&query(connection, &end, &[&id.to_string()]).await?)
}

fn is_any(rows: &[Row]) -> Result<bool, StoreError> {
    let count = rows.first().map(|row| row.try_get::<_, i64>(0));
    Ok(count.transpose()?.unwrap_or(0) > 0)
}

async fn claim(
    connection: &SharedConnection,
    due: DueWork,
    epoch: i64,
) -> Result<Vec<DeliveryRow>, StoreError> {
    let claim = format!(
        "WITH now AS MATERIALIZED (SELECT {NOW} AS ms),
         due AS (SELECT found.n FROM alert_rules r CROSS JOIN now CROSS JOIN LATERAL (
             SELECT d.n, d.next_at FROM alert_deliveries d WHERE d.rule = r.n AND d.next_at <= now.ms
             AND {BEGINNING_IS_DONE} ORDER BY d.next_at
             LIMIT greatest(0, $4 - (SELECT count(*) FROM alert_deliveries c WHERE c.rule = r.n
                 AND c.next_at > now.ms AND c.next_at <= now.ms + $2 AND c.claimed_by IS NOT NULL))
             FOR UPDATE SKIP LOCKED) found ORDER BY found.next_at LIMIT $1)
         UPDATE alert_deliveries e SET attempts = e.attempts + 1, next_at = now.ms + $2, claimed_by = $3
         FROM due, now, alerts a, alert_rules r WHERE e.n = due.n AND a.n = e.alert AND r.n = e.rule
         RETURNING {ALERT}, e.n, e.attempts, e.event, r.id, r.url, r.secret"
    );
    let (count, lease) = (i64::from(due.count_max), ms(due.lease));
    let per_rule = i64::from(CLAIMS_PER_RULE);
    let values: [&(dyn ToSql + Sync); 4] = [&count, &lease, &epoch, &per_rule];
    let rows = query(connection, &claim, &values).await?;
    let delivery = |row: &Row| -> Result<DeliveryRow, tokio_postgres::Error> {
        Ok(DeliveryRow {
            alert: alert_row(row, 0)?,
            claim: DeliveryClaim {
                number: row.try_get(ALERT_COLUMNS)?,
                attempt: row.try_get(ALERT_COLUMNS + 1)?,
            },
            event: AlertEvent::stored(row.try_get(ALERT_COLUMNS + 2)?),
            rule: row.try_get(ALERT_COLUMNS + 3)?,
            webhook: Webhook {
                url: row.try_get(ALERT_COLUMNS + 4)?,
                secret: row.try_get(ALERT_COLUMNS + 5)?,
            },
        })
    };
    Ok(rows.iter().map(delivery).collect::<Result<_, _>>()?)
}

async fn report_delivery(
    connection: &SharedConnection,
    report: &DeliveryReport,
) -> Result<bool, StoreError> {
    let (pause, outcome, problem) = report.outcome.columns();
    let update = format!(
        "UPDATE alert_deliveries SET next_at = {NOW} + $3, outcome = $4, problem = $5, tried_at = {NOW},
         claimed_by = NULL WHERE n = $1 AND attempts = $2 AND outcome IS NULL"
    );
    let values: [&(dyn ToSql + Sync); 5] = [
        &report.claim.number,
        &report.claim.attempt,
        &pause.map(ms),
        &outcome,
        &problem,
    ];
    Ok(execute(connection, &update, &values).await? > 0)
}

/// Deletes alerts that ended long ago, except those with a delivery that is still pending.
async fn forget(connection: &SharedConnection, old: EndedWork) -> Result<u64, StoreError> {
    let delete = format!(
        "DELETE FROM alerts WHERE n IN (SELECT n FROM alerts a WHERE a.ended_at <= {NOW} - $1 AND NOT EXISTS (
             SELECT 1 FROM alert_deliveries d WHERE d.alert = a.n AND d.next_at IS NOT NULL)
         ORDER BY a.ended_at LIMIT $2)"
    );
    execute(
        connection,
        &delete,
        &[&ms(old.age), &i64::from(old.count_max)],
    )
    .await
}
