//! Reads all rows for a verification, in one snapshot and without changes.

use futures_util::TryStreamExt as _;
use tokio_postgres::{Client, IsolationLevel, Row, Transaction};

use crate::chain::WalletHead;
use crate::postgres::rows::{
    ENTRY, KEY, KEY_ID, WALLET, balance_point, entry_columns, key, wallet,
};
use crate::records::ids::Epoch;
use crate::verify::{Check, HoldFound, INCOMPLETE_TASKS, KeyFound, VerifyReport, WalletFound};

type Read<T> = Result<T, tokio_postgres::Error>;

/// Selects the epochs that may own open holds: those that are not closed, and whose lease is running or expired less
/// than one lease ago. A running node would have closed all others. If no node is running, the others may own open
/// holds too.
const LIVE: &str = "WITH now AS (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms)
    SELECT epoch FROM nodes, now WHERE closed_at IS NULL AND (lease_until + $1 > now.ms
        OR NOT EXISTS (SELECT 1 FROM nodes other WHERE other.closed_at IS NULL AND other.lease_until > now.ms))";

pub(crate) async fn verify(
    client: &mut Client,
    lease_ms: i64,
    noted: &[WalletHead],
) -> Read<VerifyReport> {
    let snapshot = client
        .build_transaction()
        .isolation_level(IsolationLevel::RepeatableRead)
        .read_only(true)
        .start()
        .await?;
    let mut live = Vec::new();
    for row in snapshot.query(LIVE, &[&lease_ms]).await? {
        live.push(Epoch::new(row.try_get(0)?));
    }
    let mut check = Check::new(live, noted);
    each(
        &snapshot,
        &format!("SELECT {WALLET} FROM wallets w"),
        |row| {
            check.wallet(wallet_found(row)?);
            Ok(())
        },
    )
    .await?;
    let keys = format!("SELECT {KEY} FROM keys k JOIN wallets w ON w.n = k.wallet");
    each(&snapshot, &keys, |row| {
        check.key(key_found(row)?);
        Ok(())
    })
    .await?;
    let prices = "SELECT id, model, card FROM price_versions";
    each(&snapshot, prices, |row| {
        check.price_version(row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        Ok(())
    })
    .await?;
    let costs = "SELECT id, model, channel, card FROM cost_versions";
    each(&snapshot, costs, |row| {
        check.cost_version(
            row.try_get(0)?,
            row.try_get(1)?,
            row.try_get(2)?,
            row.try_get(3)?,
        );
        Ok(())
    })
    .await?;
    let holds =
        "SELECT id, wallet, key, amount, counts, EXISTS (SELECT 1 FROM tasks t WHERE t.hold = h.id
                 AND t.wallet = h.wallet AND t.ended_at IS NULL), booked, exposure, cost_booked
                 FROM holds h";
    each(&snapshot, holds, |row| {
        check.hold(&hold_found(row)?);
        Ok(())
    })
    .await?;
    let points = "SELECT wallet, seq, posted_at, balance, gift_balance, credit_used, charged FROM balance_points";
    each(&snapshot, points, |row| {
        check.point(row.try_get(0)?, balance_point(row, 1)?);
        Ok(())
    })
    .await?;
    let entries = format!("SELECT {ENTRY} FROM entries ORDER BY wallet, seq");
    each(&snapshot, &entries, |row| {
        check.entry(&entry_columns(row)?);
        Ok(())
    })
    .await?;
    let twice = "SELECT closes, min(wallet), count(*) FROM entries WHERE closes IS NOT NULL
                 GROUP BY closes HAVING count(*) > 1";
    each(&snapshot, twice, |row| {
        check.closed_twice(row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        Ok(())
    })
    .await?;
    let both = "SELECT h.id, h.wallet FROM holds h WHERE EXISTS (SELECT 1 FROM entries e WHERE e.closes = h.id)";
    each(&snapshot, both, |row| {
        check.open_and_closed(row.try_get(0)?, row.try_get(1)?);
        Ok(())
    })
    .await?;
    for (select, lacks) in INCOMPLETE_TASKS {
        each(&snapshot, select, |row| {
            check.task_lacks(row.try_get(0)?, row.try_get(1)?, lacks);
            Ok(())
        })
        .await?;
    }
    snapshot.commit().await?;
    Ok(check.finish())
}

/// Reads row by row, because a whole ledger might not fit into memory.
pub(crate) async fn each(
    on: &Transaction<'_>,
    sql: &str,
    mut feed: impl FnMut(&Row) -> Read<()>,
) -> Read<()> {
    let none: [&(dyn tokio_postgres::types::ToSql + Sync); 0] = [];
    let mut rows = std::pin::pin!(on.query_raw(sql, none).await?);
    while let Some(row) = rows.try_next().await? {
        feed(&row)?;
    }
    Ok(())
}

fn wallet_found(row: &Row) -> Read<WalletFound> {
    Ok(WalletFound {
        n: row.try_get(0)?,
        id: row.try_get(13)?,
        wallet: wallet(row)?,
        entries: row.try_get(7)?,
        holds_opened: row.try_get(8)?,
        posted_at: row.try_get(11)?,
        charged: row.try_get(12)?,
        head: row.try_get(9).ok(),
    })
}

fn key_found(row: &Row) -> Read<KeyFound> {
    Ok(KeyFound {
        n: row.try_get(0)?,
        id: row.try_get(KEY_ID)?,
        wallet: row.try_get(1)?,
        key: key(row)?,
    })
}

fn hold_found(row: &Row) -> Read<HoldFound> {
    Ok(HoldFound {
        id: row.try_get(0)?,
        wallet: row.try_get(1)?,
        key: row.try_get(2)?,
        amount: row.try_get(3)?,
        counts_in_flight: row.try_get(4)?,
        of_task: row.try_get(5)?,
        booked: row.try_get(6)?,
        exposure: row.try_get(7)?,
        cost_booked: row.try_get(8)?,
    })
}
