//! Reads the data of statements: entries of one wallet, its stored balances, and lists of wallets.

use std::collections::BTreeMap;

use ledger::Micro;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::records::balance_point::{BalancePoint, Balances};
use crate::records::entries::EntryKind;
use crate::records::ids::{KeyId, WalletId};
use crate::records::statement::{
    EntrySpan, StatementEntry, StoredBalance, StoredBalanceBound, WALLETS_MAX, WalletCursor,
    WalletQuery, WalletSpending,
};
use crate::records::totals::{TotalKey, TotalSum};
use crate::sqlite::reads::entries::{ENTRY_ROW, entry};
use crate::sqlite::rows::{WALLET, balance_point, wallet_row};

/// The index `entries_in_parts` divides the table into parts. A row's part is its row number, shifted right by this
/// many bits.
const PART_SHIFT: u32 = 12;

/// The row number of a wallet, and its state after its last entry.
pub(crate) fn wallet_end(
    on: &Connection,
    wallet: WalletId,
) -> rusqlite::Result<Option<(i64, BalancePoint)>> {
    let select =
        "SELECT n, entries, posted_at, balance, gift_balance, credit_used, charged FROM wallets
                  WHERE id = ?1";
    let read = |row: &Row<'_>| Ok((row.get(0)?, balance_point(row, 1)?));
    on.prepare_cached(select)?
        .query_row([wallet], read)
        .optional()
}

/// The latest stored balance within the bound. If there is none, the state before the first entry.
pub(crate) fn stored_balance(
    on: &Connection,
    wallet: i64,
    bound: StoredBalanceBound,
) -> rusqlite::Result<StoredBalance> {
    let (condition, value) = match bound {
        StoredBalanceBound::Entry(seq) => ("seq <= ?2", seq),
        StoredBalanceBound::Before(time) => ("posted_at < ?2", time.get()),
    };
    let select = format!(
        "SELECT seq, posted_at, balance, gift_balance, credit_used, charged, after_n FROM balance_points
         WHERE wallet = ?1 AND {condition} ORDER BY seq DESC LIMIT 1"
    );
    let read = |row: &Row<'_>| {
        Ok(StoredBalance {
            point: balance_point(row, 0)?,
            after_row: row.get(6)?,
        })
    };
    let found = on
        .prepare_cached(&select)?
        .query_row([wallet, value], read)
        .optional()?;
    Ok(found.unwrap_or_default())
}

/// Stored balances of entries that were posted at or after `since`, oldest first.
pub(crate) fn balance_points(
    on: &Connection,
    wallet: i64,
    since: i64,
) -> rusqlite::Result<Vec<BalancePoint>> {
    let select =
        "SELECT seq, posted_at, balance, gift_balance, credit_used, charged FROM balance_points
                  WHERE wallet = ?1 AND posted_at >= ?2 ORDER BY seq";
    let mut select = on.prepare_cached(select)?;
    let rows = select.query_map([wallet, since], |row| balance_point(row, 0))?;
    rows.collect()
}

pub(crate) fn span(on: &Connection, span: EntrySpan) -> rusqlite::Result<Vec<StatementEntry>> {
    let select = format!(
        "SELECT {ENTRY_ROW}, k.name FROM entries e INDEXED BY entries_in_parts JOIN wallets w ON w.n = e.wallet
         LEFT JOIN keys k ON k.n = e.key
         WHERE e.n >> {PART_SHIFT} = ?1 AND e.wallet = ?2 AND e.seq > ?3 AND e.seq <= ?4 ORDER BY e.n"
    );
    let mut entries: Vec<StatementEntry> = Vec::new();
    let mut select = on.prepare_cached(&select)?;
    for part in parts(on, &span)? {
        let values = [part, span.wallet, span.after, span.until];
        let rows = select.query_map(values, |row| {
            Ok(StatementEntry {
                entry: entry(row)?,
                key_name: row.get(24)?,
                after: Balances::default(),
            })
        })?;
        for row in rows {
            entries.push(row?);
        }
        if entries
            .last()
            .is_some_and(|last| last.entry.seq >= span.until)
        {
            break;
        }
    }
    Ok(entries)
}

/// Adds up the entries of a span by kind and key.
pub(crate) fn totals(
    on: &Connection,
    span: EntrySpan,
) -> rusqlite::Result<BTreeMap<TotalKey, TotalSum>> {
    let select = format!(
        "SELECT e.kind, k.id, k.name, count(*), sum(e.balance_delta + e.gift_delta - e.credit_delta), sum(e.charge),
         max(e.seq) FROM entries e INDEXED BY entries_in_parts LEFT JOIN keys k ON k.n = e.key
         WHERE e.n >> {PART_SHIFT} = ?1 AND e.wallet = ?2 AND e.seq > ?3 AND e.seq <= ?4 GROUP BY e.kind, e.key"
    );
    let mut sums = BTreeMap::new();
    let mut select = on.prepare_cached(&select)?;
    for part in parts(on, &span)? {
        let mut last = 0;
        let mut rows = select.query([part, span.wallet, span.after, span.until])?;
        while let Some(row) = rows.next()? {
            let kind: EntryKind = row.get(0)?;
            let key: Option<KeyId> = row.get(1)?;
            let name: Option<Box<str>> = row.get(2)?;
            let sum: &mut TotalSum = sums.entry(TotalKey { kind, key, name }).or_default();
            sum.add(row.get(3)?, row.get(4)?, row.get(5)?);
            last = last.max(row.get(6)?);
        }
        if last >= span.until {
            break;
        }
    }
    Ok(sums)
}

/// The parts of the table that may contain entries of a span.
fn parts(on: &Connection, span: &EntrySpan) -> rusqlite::Result<std::ops::RangeInclusive<i64>> {
    let last = "SELECT coalesce(max(n), 0) FROM entries";
    let last: i64 = on.prepare_cached(last)?.query_row([], |row| row.get(0))?;
    let part = |n: i64| n >> PART_SHIFT;
    Ok(part(span.after_row.saturating_add(1))..=part(last))
}

/// The SQL expression for a wallet's charges since the time bound as `parameter`: all charges minus the charges before
/// that time. If the time is the start of a day, the last entry before it has a stored balance.
fn spent_since(parameter: &str) -> String {
    format!(
        "CASE WHEN w.posted_at < {parameter} THEN 0 ELSE w.charged - coalesce((SELECT p.charged FROM balance_points p
         WHERE p.wallet = w.n AND p.posted_at < {parameter} ORDER BY p.seq DESC LIMIT 1), 0) END"
    )
}

pub(crate) fn list_wallets(
    on: &Connection,
    query: &WalletQuery,
) -> rusqlite::Result<Vec<WalletSpending>> {
    let limit = match query.limit {
        0 => WALLETS_MAX,
        limit => limit.min(WALLETS_MAX),
    };
    let select = format!(
        "SELECT {WALLET}, w.n, {} AS spent_today, {} AS spent_this_month FROM wallets w WHERE (?1 IS NULL OR w.n < ?1)
         AND (?2 IS NULL OR instr(lower(w.name), lower(?2)) > 0 OR substr(w.id, 1, length(?2)) = ?2)
         ORDER BY w.n DESC LIMIT ?5",
        spent_since("?3"),
        spent_since("?4"),
    );
    let mut select = on.prepare_cached(&select)?;
    let after = query.after.map(|WalletCursor(n)| n);
    let values = params![after, query.text, query.day.get(), query.month.get(), limit];
    let rows = select.query_map(values, spending)?;
    rows.collect()
}

pub(crate) fn find_spending(
    on: &Connection,
    wallet: WalletId,
    query: &WalletQuery,
) -> rusqlite::Result<Option<WalletSpending>> {
    let select = format!(
        "SELECT {WALLET}, w.n, {} AS spent_today, {} AS spent_this_month FROM wallets w WHERE w.id = ?1",
        spent_since("?2"),
        spent_since("?3"),
    );
    let values = params![wallet, query.day.get(), query.month.get()];
    let mut select = on.prepare_cached(&select)?;
    select.query_row(values, spending).optional()
}

fn spending(row: &Row<'_>) -> rusqlite::Result<WalletSpending> {
    Ok(WalletSpending {
        row: wallet_row(row)?,
        cursor: WalletCursor(row.get("n")?),
        spent_today: row.get("spent_today").map(Micro::new)?,
        spent_this_month: row.get("spent_this_month").map(Micro::new)?,
    })
}
