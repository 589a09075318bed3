//! Reads entries page by page, and price and cost versions.

use ledger::{Delta, Micro, UnixMs};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, Value, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, Row, params_from_iter};

use crate::records::call::Basis;
use crate::records::cost::{CostNumber, CostRow, EntryCost};
use crate::records::entries::{
    CallRow, ENTRIES_MAX, EntryCursor, EntryKind, EntryQuery, EntryRow, PriceRow, SettledUsage,
};
use crate::records::ids::{HoldId, PriceNumber};
use crate::records::meter::MeterText;
use crate::sqlite::rows::micro;

/// Columns of an entry `e` of a wallet `w` and a key `k`, for [`entry`].
pub(super) const ENTRY_ROW: &str = "e.n, w.id, e.seq, e.kind, e.at, e.charge, e.balance_delta, e.gift_delta, e.credit_delta, e.note, coalesce(e.closes, e.part_of), k.id, e.held, e.opened_at, e.request_id, e.meter, e.price_version, e.basis, e.booked, e.reference, e.refund_of, e.actor, e.cost, e.cost_version";

/// Reads the entries that match, in the order in which they were posted.
pub(crate) fn entries(on: &Connection, query: &EntryQuery) -> rusqlite::Result<Vec<EntryRow>> {
    let mut conditions = vec!["TRUE"];
    let mut values: Vec<Value> = Vec::new();
    let mut add = |text, value: Value| {
        conditions.push(text);
        values.push(value);
    };
    if let Some(wallet) = query.wallet {
        add(
            "e.wallet = (SELECT n FROM wallets WHERE id = ?)",
            wallet.to_string().into(),
        );
    }
    if let Some(hold) = query.closes {
        add("e.closes = ?", hold.get().into());
    }
    if let Some(since) = query.since {
        add("e.at >= ?", since.get().into());
    }
    if let Some(until) = query.until {
        add("e.at < ?", until.get().into());
    }
    if let Some(EntryCursor(after)) = query.after {
        add("e.n > ?", after.into());
    }
    let limit = match query.limit {
        0 => ENTRIES_MAX,
        limit => limit.min(ENTRIES_MAX),
    };
    let sql = format!(
        "SELECT {ENTRY_ROW}
         FROM entries e JOIN wallets w ON w.n = e.wallet LEFT JOIN keys k ON k.n = e.key
         WHERE {} ORDER BY e.n LIMIT {limit}",
        conditions.join(" AND ")
    );
    let mut select = on.prepare_cached(&sql)?;
    let rows = select.query_map(params_from_iter(values), entry)?;
    rows.collect()
}

pub(crate) fn prices(on: &Connection) -> rusqlite::Result<Vec<PriceRow>> {
    let mut select =
        on.prepare_cached("SELECT id, model, card, created_at FROM price_versions ORDER BY id")?;
    select.query_map([], price_row)?.collect()
}

pub(crate) fn price(on: &Connection, version: PriceNumber) -> rusqlite::Result<Option<PriceRow>> {
    let select = "SELECT id, model, card, created_at FROM price_versions WHERE id = ?1";
    let mut select = on.prepare_cached(select)?;
    select.query_row([version.0], price_row).optional()
}

fn price_row(row: &Row<'_>) -> rusqlite::Result<PriceRow> {
    Ok(PriceRow {
        version: PriceNumber(row.get(0)?),
        model: row.get(1)?,
        card: row.get(2)?,
        created_at: UnixMs::new(row.get(3)?),
    })
}

pub(crate) fn costs(on: &Connection) -> rusqlite::Result<Vec<CostRow>> {
    let mut select = on.prepare_cached(
        "SELECT id, model, channel, card, created_at FROM cost_versions ORDER BY id",
    )?;
    let rows = select.query_map([], |row| {
        Ok(CostRow {
            version: CostNumber(row.get(0)?),
            model: row.get(1)?,
            channel: row.get(2)?,
            card: row.get(3)?,
            created_at: UnixMs::new(row.get(4)?),
        })
    })?;
    rows.collect()
}

pub(super) fn entry(row: &Row<'_>) -> rusqlite::Result<EntryRow> {
    Ok(EntryRow {
        cursor: EntryCursor(row.get(0)?),
        wallet: row.get(1)?,
        seq: row.get(2)?,
        kind: row.get(3)?,
        at: UnixMs::new(row.get(4)?),
        charge: micro(row, 5)?,
        delta: Delta {
            balance: row.get(6)?,
            gift_balance: row.get(7)?,
            credit_used: row.get(8)?,
        },
        note: row.get(9)?,
        reference: row.get(19)?,
        refund_of: row.get(20)?,
        actor: row.get(21)?,
        call: match row.get::<_, Option<i64>>(10)? {
            Some(hold) => Some(Box::new(call(row, HoldId::new(hold))?)),
            None => None,
        },
    })
}

fn call(row: &Row<'_>, hold: HoldId) -> rusqlite::Result<CallRow> {
    let usage = match row.get::<_, Option<String>>(15)? {
        Some(meter) => Some(SettledUsage {
            meter: MeterText::from(&*meter),
            price_version: PriceNumber(row.get(16)?),
            basis: row.get(17)?,
            cost: cost(row)?,
        }),
        None => None,
    };
    Ok(CallRow {
        hold,
        key: row.get(11)?,
        held: Micro::new(row.get(12)?),
        booked: micro(row, 18)?,
        opened_at: UnixMs::new(row.get(13)?),
        request_id: row.get(14)?,
        usage,
    })
}

fn cost(row: &Row<'_>) -> rusqlite::Result<Option<EntryCost>> {
    let (amount, version): (Option<i64>, Option<i64>) = (row.get(22)?, row.get(23)?);
    Ok(amount.zip(version).map(|(amount, version)| EntryCost {
        amount: Micro::new(amount),
        version: CostNumber(version),
    }))
}

impl FromSql for EntryKind {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let kind = value.as_str()?.parse();
        kind.map_err(|error| FromSqlError::Other(Box::new(error)))
    }
}

impl FromSql for Basis {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let basis = value.as_str()?.parse();
        basis.map_err(|error| FromSqlError::Other(Box::new(error)))
    }
}
