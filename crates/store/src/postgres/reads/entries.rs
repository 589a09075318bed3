//! Reads entries, page by page, and the versions of price and cost cards.

use std::sync::Arc;

use ledger::{Delta, Micro, UnixMs};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use crate::postgres::ids::by_word;
use crate::postgres::rows::{micro, time};
use crate::records::call::Basis;
use crate::records::cost::{CostNumber, CostRow, EntryCost};
use crate::records::entries::{
    CallRow, ENTRIES_MAX, EntryCursor, EntryKind, EntryQuery, EntryRow, PriceRow, SettledUsage,
};
use crate::records::ids::{HoldId, PriceNumber};
use crate::records::meter::MeterText;

type Read<T> = Result<T, tokio_postgres::Error>;

/// Columns of an entry `e` of a wallet `w` and a key `k`, for [`entry`].
pub(super) const ENTRY_ROW: &str = "e.n, w.id, e.seq, e.kind, e.at, e.charge, e.balance_delta, e.gift_delta, e.credit_delta, e.note, coalesce(e.closes, e.part_of), k.id, e.held, e.opened_at, e.request_id, e.meter, e.price_version, e.basis, e.booked, e.reference, e.refund_of, e.actor, e.cost, e.cost_version";

/// Reads the entries that match, in the order in which they were posted.
pub(crate) async fn entries(on: Arc<Client>, query: EntryQuery) -> Read<Vec<EntryRow>> {
    let limit = match query.limit {
        0 => ENTRIES_MAX,
        limit => limit.min(ENTRIES_MAX),
    };
    let wallet = query.wallet.map(|wallet| wallet.to_string());
    let closes = query.closes.map(HoldId::get);
    let (since, until) = (query.since.map(UnixMs::get), query.until.map(UnixMs::get));
    let after = query.after.map(|EntryCursor(after)| after);
    let limit = i64::from(limit);
    let mut conditions = vec!["TRUE".to_owned()];
    let mut values: Vec<&(dyn ToSql + Sync)> = Vec::new();
    let mut add = |condition: &str, value| {
        values.push(value);
        conditions.push(condition.replace('?', &format!("${}", values.len())));
    };
    if let Some(wallet) = &wallet {
        add("e.wallet = (SELECT n FROM wallets WHERE id = ?)", wallet);
    }
    if let Some(closes) = &closes {
        add("e.closes = ?", closes);
    }
    if let Some(since) = &since {
        add("e.at >= ?", since);
    }
    if let Some(until) = &until {
        add("e.at < ?", until);
    }
    if let Some(after) = &after {
        add("e.n > ?", after);
    }
    let sql = format!(
        "SELECT {ENTRY_ROW}
         FROM entries e JOIN wallets w ON w.n = e.wallet LEFT JOIN keys k ON k.wallet = e.wallet AND k.n = e.key
         WHERE {} ORDER BY e.n LIMIT {limit}",
        conditions.join(" AND ")
    );
    on.query(&sql, &values).await?.iter().map(entry).collect()
}

pub(crate) async fn prices(on: Arc<Client>) -> Read<Vec<PriceRow>> {
    let select = "SELECT id, model, card, created_at FROM price_versions ORDER BY id";
    let found = on.query(select, &[]).await?;
    found.iter().map(price_row).collect()
}

pub(crate) async fn price(on: Arc<Client>, version: PriceNumber) -> Read<Option<PriceRow>> {
    let select = "SELECT id, model, card, created_at FROM price_versions WHERE id = $1";
    let found = on.query_opt(select, &[&version.0]).await?;
    found.as_ref().map(price_row).transpose()
}

fn price_row(row: &Row) -> Read<PriceRow> {
    Ok(PriceRow {
        version: PriceNumber(row.try_get(0)?),
        model: row.try_get(1)?,
        card: row.try_get(2)?,
        created_at: time(row, 3)?,
    })
}

pub(crate) async fn costs(on: Arc<Client>) -> Read<Vec<CostRow>> {
    let select = "SELECT id, model, channel, card, created_at FROM cost_versions ORDER BY id";
    let read = |row: &Row| {
        Ok(CostRow {
            version: CostNumber(row.try_get(0)?),
            model: row.try_get(1)?,
            channel: row.try_get(2)?,
            card: row.try_get(3)?,
            created_at: time(row, 4)?,
        })
    };
    on.query(select, &[]).await?.iter().map(read).collect()
}

pub(super) fn entry(row: &Row) -> Read<EntryRow> {
    Ok(EntryRow {
        cursor: EntryCursor(row.try_get(0)?),
        wallet: row.try_get(1)?,
        seq: row.try_get(2)?,
        kind: row.try_get(3)?,
        at: time(row, 4)?,
        charge: micro(row, 5)?,
        delta: Delta {
            balance: row.try_get(6)?,
            gift_balance: row.try_get(7)?,
            credit_used: row.try_get(8)?,
        },
        note: row.try_get(9)?,
        reference: row.try_get(19)?,
        refund_of: row.try_get(20)?,
        actor: row.try_get(21)?,
        call: match row.try_get::<_, Option<i64>>(10)? {
            Some(hold) => Some(Box::new(call(row, HoldId::new(hold))?)),
            None => None,
        },
    })
}

fn call(row: &Row, hold: HoldId) -> Read<CallRow> {
    let usage = match row.try_get::<_, Option<String>>(15)? {
        Some(meter) => Some(SettledUsage {
            meter: MeterText::from(&*meter),
            price_version: PriceNumber(row.try_get(16)?),
            basis: row.try_get(17)?,
            cost: cost(row)?,
        }),
        None => None,
    };
    Ok(CallRow {
        hold,
        key: row.try_get(11)?,
        held: Micro::new(row.try_get(12)?),
        booked: micro(row, 18)?,
        opened_at: time(row, 13)?,
        request_id: row.try_get(14)?,
        usage,
    })
}

fn cost(row: &Row) -> Read<Option<EntryCost>> {
    let (amount, version): (Option<i64>, Option<i64>) = (row.try_get(22)?, row.try_get(23)?);
    Ok(amount.zip(version).map(|(amount, version)| EntryCost {
        amount: Micro::new(amount),
        version: CostNumber(version),
    }))
}

by_word!(EntryKind);
by_word!(Basis);
