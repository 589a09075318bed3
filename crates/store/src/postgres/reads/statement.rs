//! Reads the data of statements: entries of one wallet, its stored balances, and lists of wallets.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use crate::postgres::reads::entries::{ENTRY_ROW, entry};
use crate::postgres::rows::{WALLET, balance_point, wallet_row};
use crate::records::balance_point::{BalancePoint, Balances};
use crate::records::ids::WalletId;
use crate::records::statement::{
    EntrySpan, StatementEntry, StoredBalance, StoredBalanceBound, WALLETS_MAX, WalletCursor,
    WalletQuery, WalletSpending,
};
use crate::records::totals::{TotalKey, TotalSum};

type Read<T> = Result<T, tokio_postgres::Error>;

/// The row number of a wallet, and its state after its last entry.
pub(crate) async fn wallet_end(
    on: Arc<Client>,
    wallet: WalletId,
) -> Read<Option<(i64, BalancePoint)>> {
    let select =
        "SELECT n, entries, posted_at, balance, gift_balance, credit_used, charged FROM wallets
                  WHERE id = $1";
    let found = on.query_opt(select, &[&wallet.to_string()]).await?;
    let read = |row: Row| Ok((row.try_get(0)?, balance_point(&row, 1)?));
    found.map(read).transpose()
}

/// The latest stored balance within the bound. If there is none, the state before the first entry.
pub(crate) async fn stored_balance(
    on: Arc<Client>,
    wallet: i64,
    bound: StoredBalanceBound,
) -> Read<StoredBalance> {
    let (condition, value) = match bound {
        StoredBalanceBound::Entry(seq) => ("seq <= $2", seq),
        StoredBalanceBound::Before(time) => ("posted_at < $2", time.get()),
    };
    let select = format!(
        "SELECT seq, posted_at, balance, gift_balance, credit_used, charged FROM balance_points
         WHERE wallet = $1 AND {condition} ORDER BY seq DESC LIMIT 1"
    );
    let Some(row) = on.query_opt(&select, &[&wallet, &value]).await? else {
        return Ok(StoredBalance::default());
    };
    Ok(StoredBalance {
        point: balance_point(&row, 0)?,
        after_row: 0,
    })
}

/// Stored balances of entries that were posted at or after `since`, oldest first.
pub(crate) async fn balance_points(
    on: Arc<Client>,
    wallet: i64,
    since: i64,
) -> Read<Vec<BalancePoint>> {
    let select =
        "SELECT seq, posted_at, balance, gift_balance, credit_used, charged FROM balance_points
                  WHERE wallet = $1 AND posted_at >= $2 ORDER BY seq";
    let rows = on.query(select, &[&wallet, &since]).await?;
    rows.iter().map(|row| balance_point(row, 0)).collect()
}

pub(crate) async fn span(on: Arc<Client>, span: EntrySpan) -> Read<Vec<StatementEntry>> {
    let select = format!(
        "SELECT {ENTRY_ROW}, k.name FROM entries e JOIN wallets w ON w.n = e.wallet
         LEFT JOIN keys k ON k.wallet = e.wallet AND k.n = e.key
         WHERE e.wallet = $1 AND e.seq > $2 AND e.seq <= $3 ORDER BY e.seq"
    );
    let values: [&(dyn ToSql + Sync); 3] = [&span.wallet, &span.after, &span.until];
    let read = |row: &Row| {
        Ok(StatementEntry {
            entry: entry(row)?,
            key_name: row.try_get(24)?,
            after: Balances::default(),
        })
    };
    on.query(&select, &values).await?.iter().map(read).collect()
}

/// Adds up the entries of a span by kind and key.
pub(crate) async fn totals(on: Arc<Client>, span: EntrySpan) -> Read<BTreeMap<TotalKey, TotalSum>> {
    let select = "SELECT e.kind, k.id, k.name, e.entries, e.total, e.charged FROM (
        SELECT kind, key, count(*) AS entries, sum(balance_delta + gift_delta - credit_delta)::bigint AS total,
            sum(charge)::bigint AS charged
        FROM entries WHERE wallet = $1 AND seq > $2 AND seq <= $3 GROUP BY kind, key) AS e
        LEFT JOIN keys k ON k.wallet = $1 AND k.n = e.key";
    let values: [&(dyn ToSql + Sync); 3] = [&span.wallet, &span.after, &span.until];
    let mut sums = BTreeMap::new();
    for row in on.query(select, &values).await? {
        let place = TotalKey {
            kind: row.try_get(0)?,
            key: row.try_get(1)?,
            name: row.try_get(2)?,
        };
        let sum: &mut TotalSum = sums.entry(place).or_default();
        sum.add(row.try_get(3)?, row.try_get(4)?, row.try_get(5)?);
    }
    Ok(sums)
}

/// The SQL expression for a wallet's charges since the time bound as `parameter`: all charges minus the charges before
/// that time. If the time is the start of a day, the last entry before it has a stored balance.
fn spent_since(parameter: &str) -> String {
    format!(
        "CASE WHEN w.posted_at < {parameter} THEN 0 ELSE w.charged - coalesce((SELECT p.charged FROM balance_points p
         WHERE p.wallet = w.n AND p.posted_at < {parameter} ORDER BY p.seq DESC LIMIT 1), 0) END"
    )
}

pub(crate) async fn list_wallets(on: Arc<Client>, query: WalletQuery) -> Read<Vec<WalletSpending>> {
    let limit = match query.limit {
        0 => WALLETS_MAX,
        limit => limit.min(WALLETS_MAX),
    };
    let select = format!(
        "SELECT {WALLET}, {} AS spent_today, {} AS spent_this_month FROM wallets w
         WHERE ($1::bigint IS NULL OR w.n < $1)
         AND ($2::text IS NULL OR strpos(lower(w.name), lower($2)) > 0 OR starts_with(w.id, $2))
         ORDER BY w.n DESC LIMIT $5",
        spent_since("$3::bigint"),
        spent_since("$4::bigint"),
    );
    let after = query.after.map(|WalletCursor(n)| n);
    let (day, month, limit) = (query.day.get(), query.month.get(), i64::from(limit));
    let values: [&(dyn ToSql + Sync); 5] = [&after, &query.text, &day, &month, &limit];
    on.query(&select, &values)
        .await?
        .iter()
        .map(spending)
        .collect()
}

pub(crate) async fn find_spending(
    on: Arc<Client>,
    wallet: WalletId,
    query: WalletQuery,
) -> Read<Option<WalletSpending>> {
    let select = format!(
        "SELECT {WALLET}, {} AS spent_today, {} AS spent_this_month FROM wallets w WHERE w.id = $1",
        spent_since("$2::bigint"),
        spent_since("$3::bigint"),
    );
    let (id, day, month) = (wallet.to_string(), query.day.get(), query.month.get());
    let found = on.query_opt(&select, &[&id, &day, &month]).await?;
    found.as_ref().map(spending).transpose()
}

fn spending(row: &Row) -> Read<WalletSpending> {
    Ok(WalletSpending {
        row: wallet_row(row)?,
        cursor: WalletCursor(row.try_get(0)?),
        spent_today: row.try_get("spent_today").map(ledger::Micro::new)?,
        spent_this_month: row.try_get("spent_this_month").map(ledger::Micro::new)?,
    })
}
