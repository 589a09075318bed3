//! Looks up tasks.

use std::sync::Arc;

use ledger::{Micro, UnixMs};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use super::updates::upstream;
use crate::records::ids::WalletId;
use crate::records::task::TaskView;
use crate::records::task_id::TaskId;
use crate::records::task_list::{TaskListed, TaskPage, TaskQuery};
use crate::stats::Backlog;

type Read<T> = Result<T, tokio_postgres::Error>;

pub(crate) async fn find(
    on: Arc<Client>,
    wallet: WalletId,
    task: TaskId,
) -> Read<Option<TaskView>> {
    let select = "SELECT t.protocol, t.model, t.memo, t.channel, t.upstream_model, t.upstream_id, t.status,
                  t.ended_at IS NOT NULL, t.snapshot
                  FROM tasks t JOIN wallets w ON w.n = t.wallet WHERE t.id = $1 AND w.id = $2 AND t.hidden_at IS NULL";
    let (task, wallet) = (task.to_string(), wallet.to_string());
    let Some(row) = on.query_opt(select, &[&task, &wallet]).await? else {
        return Ok(None);
    };
    Ok(Some(TaskView {
        protocol: row.try_get(0)?,
        model: row.try_get(1)?,
        memo: row.try_get(2)?,
        upstream: upstream(&row, 3)?,
        status: row.try_get(6)?,
        is_ended: row.try_get(7)?,
        snapshot: row.try_get::<_, Vec<u8>>(8)?.into(),
    }))
}

/// Counts the waiting callbacks, with an index, and finds the age of the oldest open hold. Open holds are few.
pub(crate) async fn backlog(on: Arc<Client>) -> Read<Backlog> {
    let select = "SELECT (SELECT count(*) FROM callbacks WHERE next_at IS NOT NULL),
                  (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint - min(opened_at) FROM holds)";
    let row = on.query_one(select, &[]).await?;
    Ok(Backlog::new(row.try_get(0)?, row.try_get(1)?))
}

/// The channels of open tasks, with the number of tasks on each.
pub(crate) async fn channels(on: Arc<Client>) -> Read<Vec<(Box<str>, u64)>> {
    let select = "SELECT channel, count(*) FROM tasks WHERE next_at IS NOT NULL AND channel IS NOT NULL GROUP BY channel";
    let rows = on.query(select, &[]).await?;
    let counted = rows.iter().map(|row| {
        let count: i64 = row.try_get(1)?;
        Ok((row.try_get(0)?, u64::try_from(count).unwrap_or(0)))
    });
    counted.collect()
}

/// Reads a page of tasks, newest first, and their total number.
pub(crate) async fn list(on: Arc<Client>, query: TaskQuery) -> Read<TaskPage> {
    const WHERE: &str = "($2::text IS NULL OR t.protocol = $2)
        AND ($3::text[] IS NULL OR t.status = ANY($3)) AND ($4::text IS NULL OR t.model = $4)
        AND ($5::text[] IS NULL OR t.id = ANY($5)) AND (NOT $6 OR t.ended_at IS NULL) AND ($7 OR t.hidden_at IS NULL)
        AND ($8::text IS NULL OR t.id < $8) AND ($9::text IS NULL OR (t.id >= $9 AND t.id < $9 || 'g'))";
    // The key of a task comes from its open hold, or from the entry that closed the hold.
    const FROM: &str = "tasks t JOIN wallets w ON w.n = t.wallet
        LEFT JOIN holds h ON h.wallet = t.wallet AND h.id = t.hold
        LEFT JOIN entries e ON e.wallet = t.wallet AND e.closes = t.hold
        LEFT JOIN keys k ON k.wallet = t.wallet AND k.n = coalesce(h.key, e.key)";
    let wallet = query.wallet.map(|wallet| wallet.to_string());
    let statuses = (!query.statuses.is_empty()).then_some(&query.statuses);
    let ids: Vec<String> = query.ids.iter().map(TaskId::to_string).collect();
    let ids = (!ids.is_empty()).then_some(&ids);
    let (protocol, model) = (query.protocol.as_deref(), query.model.as_deref());
    let key = query.key.map(|key| key.to_string());
    let of_key = match key {
        Some(_) => "k.id = $10::text",
        None => "$10::text IS NULL",
    };
    // Makes the database use the index of the wallet. Otherwise a query for a wallet with few tasks would read the
    // tasks of all wallets.
    let of_wallet = match wallet {
        Some(_) => "t.wallet = (SELECT n FROM wallets WHERE id = $1::text)",
        None => "$1::text IS NULL",
    };
    let condition = format!("{of_wallet} AND {WHERE} AND {of_key}");
    let before = query.before.map(|task| task.to_string());
    let prefix = query.id_prefix.as_deref();
    let filters: [&(dyn ToSql + Sync); 10] = [
        &wallet,
        &protocol,
        &statuses,
        &model,
        &ids,
        &query.only_open,
        &query.with_hidden,
        &before,
        &prefix,
        &key,
    ];
    let total: i64 = if query.uncounted {
        0
    } else {
        let from = match key {
            Some(_) => FROM,
            None => "tasks t JOIN wallets w ON w.n = t.wallet",
        };
        let count = format!("SELECT count(*) FROM {from} WHERE {condition}");
        on.query_one(&count, &filters).await?.try_get(0)?
    };
    let select = format!(
        "SELECT t.id, w.id, t.protocol, t.model, t.status, t.progress, t.channel, t.polls, t.created_at, t.next_at,
         t.ended_at, c.attempts, c.outcome, t.snapshot, k.id, e.charge FROM {FROM}
         LEFT JOIN callbacks c ON c.wallet = t.wallet AND c.task = t.id
         WHERE {condition} ORDER BY t.id DESC LIMIT $11 OFFSET $12"
    );
    let (limit, offset) = (i64::from(query.limit), i64::from(query.offset));
    let mut values = filters.to_vec();
    values.extend([&limit as &(dyn ToSql + Sync), &offset]);
    let rows = on.query(&select, &values).await?;
    Ok(TaskPage {
        tasks: rows.iter().map(listed).collect::<Read<_>>()?,
        total: u64::try_from(total).unwrap_or(0),
    })
}

fn listed(row: &Row) -> Read<TaskListed> {
    let time = |column| -> Read<Option<UnixMs>> {
        Ok(row.try_get::<_, Option<i64>>(column)?.map(UnixMs::new))
    };
    let count = |count: i64| u32::try_from(count).unwrap_or(u32::MAX);
    Ok(TaskListed {
        id: row.try_get(0)?,
        wallet: row.try_get(1)?,
        protocol: row.try_get(2)?,
        model: row.try_get(3)?,
        status: row.try_get(4)?,
        progress: row
            .try_get::<_, Option<i16>>(5)?
            .and_then(|progress| u8::try_from(progress).ok()),
        channel: row.try_get(6)?,
        polls: count(row.try_get(7)?),
        created_at: UnixMs::new(row.try_get(8)?),
        next_at: time(9)?,
        ended_at: time(10)?,
        callback_attempts: row.try_get::<_, Option<i64>>(11)?.map(count),
        callback_outcome: row.try_get(12)?,
        snapshot: row.try_get::<_, Vec<u8>>(13)?.into(),
        key: row.try_get(14)?,
        charge: row.try_get::<_, Option<i64>>(15)?.map(Micro::new),
    })
}
