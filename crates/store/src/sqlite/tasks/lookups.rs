//! Looks up tasks, on the read pool.

use ledger::{Micro, UnixMs};
use rusqlite::types::ToSql;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::transactions::upstream;
use crate::records::ids::WalletId;
use crate::records::task::TaskView;
use crate::records::task_id::TaskId;
use crate::records::task_list::{TaskListed, TaskPage, TaskQuery};
use crate::stats::Backlog;

pub(crate) fn find(
    on: &Connection,
    wallet: WalletId,
    task: TaskId,
) -> rusqlite::Result<Option<TaskView>> {
    let select = "SELECT t.protocol, t.model, t.memo, t.channel, t.upstream_model, t.upstream_id, t.status,
                  t.ended_at IS NOT NULL, t.snapshot
                  FROM tasks t JOIN wallets w ON w.n = t.wallet WHERE t.id = ?1 AND w.id = ?2 AND t.hidden_at IS NULL";
    on.prepare_cached(select)?
        .query_row(params![task, wallet], |row| {
            Ok(TaskView {
                protocol: row.get(0)?,
                model: row.get(1)?,
                memo: row.get(2)?,
                upstream: upstream(row, 3)?,
                status: row.get(6)?,
                is_ended: row.get(7)?,
                snapshot: bytes(row, 8)?,
            })
        })
        .optional()
}

pub(crate) fn has_due(on: &Connection, table: &'static str, now: UnixMs) -> rusqlite::Result<bool> {
    on.prepare_cached(&format!(
        "SELECT 1 FROM {table} WHERE next_at <= ?1 LIMIT 1"
    ))?
    .exists([now.get()])
}

/// Counts the waiting callbacks, with an index, and finds the age of the oldest open hold. Open holds are few.
pub(crate) fn backlog(on: &Connection, now: UnixMs) -> rusqlite::Result<Backlog> {
    let select = "SELECT (SELECT count(*) FROM callbacks WHERE next_at IS NOT NULL),
                  (SELECT ?1 - min(opened_at) FROM holds)";
    on.prepare_cached(select)?.query_row([now.get()], |row| {
        Ok(Backlog::new(row.get(0)?, row.get(1)?))
    })
}

/// The channels of open tasks, with the number of tasks on each.
pub(crate) fn channels(on: &Connection) -> rusqlite::Result<Vec<(Box<str>, u64)>> {
    let select = "SELECT channel, count(*) FROM tasks WHERE next_at IS NOT NULL AND channel IS NOT NULL GROUP BY channel";
    on.prepare_cached(select)?
        .query_map([], |row| {
            let count: i64 = row.get(1)?;
            Ok((row.get(0)?, u64::try_from(count).unwrap_or(0)))
        })?
        .collect()
}

/// Reads a page of tasks, newest first, and the number of all tasks that match (0 if the query is `uncounted`).
pub(crate) fn list(on: &Connection, query: &TaskQuery) -> rusqlite::Result<TaskPage> {
    const WHERE: &str = "(?2 IS NULL OR t.protocol = ?2)
        AND (?3 IS NULL OR t.status IN (SELECT value FROM json_each(?3))) AND (?4 IS NULL OR t.model = ?4)
        AND (?5 IS NULL OR t.id IN (SELECT value FROM json_each(?5))) AND (NOT ?6 OR t.ended_at IS NULL)
        AND (?7 OR t.hidden_at IS NULL) AND (?8 IS NULL OR t.id < ?8)
        AND (?9 IS NULL OR (t.id >= ?9 AND t.id < ?9 || 'g'))";
    // The key of a task comes from its open hold, or from the entry that closed the hold.
    const FROM: &str = "tasks t JOIN wallets w ON w.n = t.wallet LEFT JOIN holds h ON h.id = t.hold
        LEFT JOIN entries e ON e.closes = t.hold LEFT JOIN keys k ON k.n = coalesce(h.key, e.key)";
    let of_key = match query.key {
        Some(_) => "k.id = ?10",
        None => "?10 IS NULL",
    };
    // Makes SQLite use the index on the wallet. Otherwise a query for a wallet with few tasks would read all tasks.
    let of_wallet = match query.wallet {
        Some(_) => "t.wallet = (SELECT n FROM wallets WHERE id = ?1)",
        None => "?1 IS NULL",
    };
    let condition = format!("{of_wallet} AND {WHERE} AND {of_key}");
    // A list of texts always has a JSON form.
    let json = |list: &[String]| serde_json::to_string(list).unwrap_or_default();
    let ids: Vec<String> = query.ids.iter().map(TaskId::to_string).collect();
    let statuses = (!query.statuses.is_empty()).then(|| json(&query.statuses));
    let ids = (!ids.is_empty()).then(|| json(&ids));
    let filters: [&dyn ToSql; 10] = [
        &query.wallet,
        &query.protocol,
        &statuses,
        &query.model,
        &ids,
        &query.only_open,
        &query.with_hidden,
        &query.before,
        &query.id_prefix,
        &query.key,
    ];
    let total: i64 = if query.uncounted {
        0
    } else {
        let from = match query.key {
            Some(_) => FROM,
            None => "tasks t JOIN wallets w ON w.n = t.wallet",
        };
        let count = format!("SELECT count(*) FROM {from} WHERE {condition}");
        on.prepare_cached(&count)?
            .query_row(&filters[..], |row| row.get(0))?
    };
    let select = format!(
        "SELECT t.id, w.id, t.protocol, t.model, t.status, t.progress, t.channel, t.polls, t.created_at, t.next_at,
         t.ended_at, c.attempts, c.outcome, t.snapshot, k.id, e.charge FROM {FROM}
         LEFT JOIN callbacks c ON c.task = t.id WHERE {condition} ORDER BY t.id DESC LIMIT ?11 OFFSET ?12"
    );
    let mut values = filters.to_vec();
    values.extend([&query.limit as &dyn ToSql, &query.offset]);
    let tasks = on
        .prepare_cached(&select)?
        .query_map(&values[..], listed)?
        .collect::<rusqlite::Result<_>>()?;
    Ok(TaskPage {
        tasks,
        total: u64::try_from(total).unwrap_or(0),
    })
}

fn listed(row: &Row<'_>) -> rusqlite::Result<TaskListed> {
    let time = |column| -> rusqlite::Result<Option<UnixMs>> {
        Ok(row.get::<_, Option<i64>>(column)?.map(UnixMs::new))
    };
    Ok(TaskListed {
        id: row.get(0)?,
        wallet: row.get(1)?,
        protocol: row.get(2)?,
        model: row.get(3)?,
        status: row.get(4)?,
        progress: row.get(5)?,
        channel: row.get(6)?,
        polls: row.get(7)?,
        created_at: UnixMs::new(row.get(8)?),
        next_at: time(9)?,
        ended_at: time(10)?,
        callback_attempts: row.get(11)?,
        callback_outcome: row.get(12)?,
        snapshot: bytes(row, 13)?,
        key: row.get(14)?,
        charge: row.get::<_, Option<i64>>(15)?.map(Micro::new),
    })
}

pub(crate) fn bytes(row: &Row<'_>, column: usize) -> rusqlite::Result<Box<[u8]>> {
    row.get::<_, Vec<u8>>(column).map(Vec::into_boxed_slice)
}
