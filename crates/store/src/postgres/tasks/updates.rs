//! Steps of tasks and callbacks that are one statement each. A step that names a claim takes effect only if the claim
//! is still held.

use std::time::Duration;

use ledger::UnixMs;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use crate::error::StoreError;
use crate::postgres::reads::pool::SharedConnection;
use crate::queue::command::{DueWork, EndedWork, OneTask};
use crate::records::ids::{Epoch, HoldId, PriceVersion, WalletId};
use crate::records::task::{
    CallbackOutcome, CallbackReport, CallbackRow, Claim, ClaimRenewal, TaskAccepted,
    TaskPollReport, TaskRow, TaskUpstream,
};
use crate::records::task_id::TaskId;

/// The database's time in milliseconds.
const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// Columns of a claimed task and the time of its claim, for [`task_row`].
const TASK: &str = "t.id, t.fence, w.id, t.hold, t.protocol, t.model, t.price_version, t.bound, t.channel,
    t.upstream_model, t.upstream_id, t.memo, t.delivery, t.polls, t.missing, t.missing_since, t.created_at, t.expires_at,
    now.ms, coalesce((SELECT model FROM price_versions WHERE id = t.price_version), ''),
    coalesce((SELECT card FROM price_versions WHERE id = t.price_version), ''), t.endpoint,
    (SELECT k.id FROM keys k WHERE k.wallet = t.wallet AND k.n = t.key)";

pub(super) async fn accept(
    connection: &SharedConnection,
    accepted: TaskAccepted,
) -> Result<bool, StoreError> {
    let update = format!(
        "UPDATE tasks SET channel = $3, upstream_model = $4, upstream_id = $5, next_at = {NOW} + $6, claimed_by = NULL
         WHERE id = $1 AND fence = $2 AND ended_at IS NULL"
    );
    let TaskUpstream { channel, model, id } = accepted.upstream;
    let values: [&(dyn ToSql + Sync); 6] = [
        &accepted.claim.task.to_string(),
        &accepted.claim.fence,
        &&*channel,
        &&*model,
        &&*id,
        &ms(accepted.next_in),
    ];
    changed(connection, &update, &values).await
}

pub(super) async fn renew_claim(
    connection: &SharedConnection,
    renewal: ClaimRenewal,
) -> Result<bool, StoreError> {
    let update = format!(
        "UPDATE tasks SET next_at = {NOW} + $3, delivery = coalesce($4, delivery), channel = coalesce($5, channel),
         upstream_model = coalesce($6, upstream_model), upstream_id = coalesce($7, upstream_id)
         WHERE id = $1 AND fence = $2 AND ended_at IS NULL"
    );
    let upstream = renewal.upstream.as_ref();
    let values: [&(dyn ToSql + Sync); 7] = [
        &renewal.claim.task.to_string(),
        &renewal.claim.fence,
        &ms(renewal.lease),
        &renewal.delivery.as_deref(),
        &upstream.map(|upstream| &*upstream.channel),
        &upstream.map(|upstream| &*upstream.model),
        &upstream.map(|upstream| &*upstream.id),
    ];
    changed(connection, &update, &values).await
}

pub(super) async fn report_poll(
    connection: &SharedConnection,
    report: TaskPollReport,
) -> Result<bool, StoreError> {
    let update = format!(
        "UPDATE tasks SET status = coalesce($3, status), progress = coalesce($4, progress),
         snapshot = coalesce($5, snapshot), next_at = {NOW} + $6, polls = polls + 1, claimed_by = NULL,
         missing = CASE WHEN $7 THEN missing + 1 ELSE 0 END,
         missing_since = CASE WHEN $7 THEN coalesce(missing_since, {NOW}) END
         WHERE id = $1 AND fence = $2 AND ended_at IS NULL"
    );
    let running_state = report.running_state.as_ref();
    let values: [&(dyn ToSql + Sync); 7] = [
        &report.claim.task.to_string(),
        &report.claim.fence,
        &running_state.map(|running_state| &*running_state.status),
        &running_state.and_then(|running_state| running_state.progress.map(i16::from)),
        &running_state.map(|running_state| &*running_state.snapshot),
        &ms(report.next_in),
        &report.missing,
    ];
    changed(connection, &update, &values).await
}

/// Claims due tasks. Skips rows that another node is claiming.
pub(super) async fn claim(
    connection: &SharedConnection,
    due: DueWork,
    epoch: i64,
) -> Result<Vec<TaskRow>, StoreError> {
    let claim = format!(
        "WITH now AS MATERIALIZED (SELECT {NOW} AS ms),
         due AS (SELECT wallet, id FROM tasks WHERE next_at <= (SELECT ms FROM now) ORDER BY next_at LIMIT $1
             FOR UPDATE SKIP LOCKED)
         UPDATE tasks t SET fence = t.fence + 1, next_at = now.ms + $2, claimed_by = $3 FROM due, now, wallets w
         WHERE t.wallet = due.wallet AND t.id = due.id AND w.n = t.wallet RETURNING {TASK}"
    );
    let (count, lease) = (i64::from(due.count_max), ms(due.lease));
    let rows = query(connection, &claim, &[&count, &lease, &epoch]).await?;
    Ok(rows.iter().map(task_row).collect::<Result<_, _>>()?)
}

/// Claims one task of a wallet, even if another node has claimed it.
pub(super) async fn claim_one(
    connection: &SharedConnection,
    one: OneTask,
    epoch: i64,
) -> Result<Option<TaskRow>, StoreError> {
    let claim = format!(
        "WITH now AS MATERIALIZED (SELECT {NOW} AS ms)
         UPDATE tasks t SET fence = t.fence + 1, next_at = now.ms + $3, claimed_by = $4 FROM now, wallets w
         WHERE t.id = $1 AND w.id = $2 AND w.n = t.wallet AND t.ended_at IS NULL RETURNING {TASK}"
    );
    let (task, wallet) = (one.task.to_string(), one.wallet.to_string());
    let lease = ms(one.lease);
    let rows = query(connection, &claim, &[&task, &wallet, &lease, &epoch]).await?;
    Ok(rows.first().map(task_row).transpose()?)
}

pub(super) async fn hide(
    connection: &SharedConnection,
    wallet: WalletId,
    task: TaskId,
) -> Result<bool, StoreError> {
    let update = format!(
        "UPDATE tasks t SET hidden_at = {NOW} FROM wallets w WHERE t.id = $1 AND w.id = $2 AND w.n = t.wallet
         AND t.ended_at IS NOT NULL AND t.hidden_at IS NULL"
    );
    changed(
        connection,
        &update,
        &[&task.to_string(), &wallet.to_string()],
    )
    .await
}

/// Deletes tasks that ended long ago, with their callbacks, except those whose callback is still pending.
pub(super) async fn forget(
    connection: &SharedConnection,
    old: EndedWork,
) -> Result<u64, StoreError> {
    let delete = format!(
        "WITH old AS (SELECT t.wallet, t.id FROM tasks t WHERE t.ended_at <= {NOW} - $1 AND NOT EXISTS (
             SELECT 1 FROM callbacks c WHERE c.wallet = t.wallet AND c.task = t.id AND c.next_at IS NOT NULL)
             ORDER BY t.ended_at LIMIT $2 FOR UPDATE SKIP LOCKED),
         sent AS (DELETE FROM callbacks c USING old WHERE c.wallet = old.wallet AND c.task = old.id)
         DELETE FROM tasks t USING old WHERE t.wallet = old.wallet AND t.id = old.id"
    );
    execute(
        connection,
        &delete,
        &[&ms(old.age), &i64::from(old.count_max)],
    )
    .await
}

pub(super) async fn claim_callbacks(
    connection: &SharedConnection,
    due: DueWork,
    epoch: i64,
) -> Result<Vec<CallbackRow>, StoreError> {
    let claim = format!(
        "WITH now AS MATERIALIZED (SELECT {NOW} AS ms),
         due AS (SELECT wallet, task FROM callbacks WHERE next_at <= (SELECT ms FROM now) ORDER BY next_at LIMIT $1
             FOR UPDATE SKIP LOCKED)
         UPDATE callbacks c SET attempts = c.attempts + 1, next_at = now.ms + $2, claimed_by = $3
         FROM due, now, wallets w WHERE c.wallet = due.wallet AND c.task = due.task AND w.n = c.wallet
         RETURNING c.task, c.attempts, w.id, c.url, c.body"
    );
    let (count, lease) = (i64::from(due.count_max), ms(due.lease));
    let rows = query(connection, &claim, &[&count, &lease, &epoch]).await?;
    let callback = |row: &Row| -> Result<CallbackRow, tokio_postgres::Error> {
        Ok(CallbackRow {
            claim: Claim {
                task: row.try_get(0)?,
                fence: row.try_get(1)?,
            },
            wallet: row.try_get(2)?,
            url: row.try_get(3)?,
            body: row.try_get::<_, Vec<u8>>(4)?.into(),
        })
    };
    Ok(rows.iter().map(callback).collect::<Result<_, _>>()?)
}

pub(super) async fn report_callback(
    connection: &SharedConnection,
    report: CallbackReport,
) -> Result<bool, StoreError> {
    let (pause, outcome, tried) = match report.outcome {
        CallbackOutcome::Delivered => (None, Some("delivered"), true),
        CallbackOutcome::GivenUp => (None, Some("given_up"), true),
        CallbackOutcome::Again { after } => (Some(ms(after)), None, true),
        CallbackOutcome::NotTried { after } => (Some(ms(after)), None, false),
    };
    let update = format!(
        "UPDATE callbacks SET next_at = {NOW} + $3, outcome = $4, claimed_by = NULL,
         attempts = CASE WHEN $5 THEN attempts ELSE attempts - 1 END
         WHERE task = $1 AND attempts = $2 AND outcome IS NULL"
    );
    let task = report.claim.task.to_string();
    let values: [&(dyn ToSql + Sync); 5] = [&task, &report.claim.fence, &pause, &outcome, &tried];
    changed(connection, &update, &values).await
}

/// Voids the node's own earlier claims when it starts, so that their work continues at once. Claims of other nodes must
/// expire, because those nodes may only have lost their connection to the database.
pub(crate) async fn void_claims(
    on: &Client,
    name: &str,
    epoch: Epoch,
) -> Result<(), tokio_postgres::Error> {
    for table in ["tasks", "callbacks", "alert_deliveries"] {
        let void = format!(
            "UPDATE {table} SET next_at = least(next_at, {NOW}), claimed_by = NULL WHERE next_at IS NOT NULL
             AND claimed_by IN (SELECT epoch FROM nodes WHERE name = $1 AND epoch <> $2)"
        );
        on.execute(&void, &[&name, &epoch.get()]).await?;
    }
    let void = "DELETE FROM alert_watcher WHERE epoch IN (SELECT epoch FROM nodes WHERE name = $1 AND epoch <> $2)";
    on.execute(void, &[&name, &epoch.get()]).await?;
    Ok(())
}

async fn changed(
    connection: &SharedConnection,
    statement: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Result<bool, StoreError> {
    Ok(execute(connection, statement, values).await? > 0)
}

pub(crate) async fn execute(
    connection: &SharedConnection,
    statement: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Result<u64, StoreError> {
    connection
        .ask(&|on| async move { on.execute(statement, values).await })
        .await
}

pub(crate) async fn query(
    connection: &SharedConnection,
    statement: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, StoreError> {
    connection
        .ask(&|on| async move { on.query(statement, values).await })
        .await
}

fn task_row(row: &Row) -> Result<TaskRow, tokio_postgres::Error> {
    let bound: &str = row.try_get(7)?;
    let count = |column| -> Result<u32, tokio_postgres::Error> {
        let count: i64 = row.try_get(column)?;
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    };
    Ok(TaskRow {
        claim: Claim {
            task: row.try_get(0)?,
            fence: row.try_get(1)?,
        },
        wallet: row.try_get(2)?,
        key: row.try_get(22)?,
        hold: HoldId::new(row.try_get(3)?),
        protocol: row.try_get(4)?,
        endpoint: row.try_get(21)?,
        model: row.try_get(5)?,
        price_version: PriceVersion::new(row.try_get(6)?, row.try_get(19)?, row.try_get(20)?),
        bound: serde_json::from_str(bound).unwrap_or_default(),
        upstream: upstream(row, 8)?,
        memo: row.try_get(11)?,
        delivery: row.try_get(12)?,
        polls: count(13)?,
        missing: count(14)?,
        missing_since: row.try_get::<_, Option<i64>>(15)?.map(UnixMs::new),
        created_at: UnixMs::new(row.try_get(16)?),
        expires_at: UnixMs::new(row.try_get(17)?),
        claimed_at: UnixMs::new(row.try_get(18)?),
    })
}

/// Reads the upstream of a task from three columns that start at `first`.
pub(super) fn upstream(
    row: &Row,
    first: usize,
) -> Result<Option<TaskUpstream>, tokio_postgres::Error> {
    let columns = (
        row.try_get(first)?,
        row.try_get(first + 1)?,
        row.try_get(first + 2)?,
    );
    Ok(match columns {
        (Some(channel), Some(model), Some(id)) => Some(TaskUpstream { channel, model, id }),
        _ => None,
    })
}

pub(crate) fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
