//! The roll-ups of the journal: written with its rows, read for reports.

use std::collections::HashMap;

use ledger::UnixMs;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::records::ids::{KeyId, WalletId};
use crate::records::journal::JournalRow;
use crate::usage::{
    Grain, Report, Series, Totals, UsageQuery, UsageRow, minutes_kept_since, roll_up,
};

const CACHED_SERIES_MAX: usize = 65_536;

const SERIES: &str = "SELECT n FROM usage_series
    WHERE wallet = ?1 AND key = ?2 AND model = ?3 AND channel = ?4 AND endpoint = ?5";
const NEW_SERIES: &str = "INSERT INTO usage_series (wallet, key, model, channel, endpoint)
    VALUES (?1, ?2, ?3, ?4, ?5) RETURNING n";
const TOTALS: &str = "SELECT totals FROM usage_totals WHERE grain = ?1 AND at = ?2 AND series = ?3";
const PUT: &str = "INSERT INTO usage_totals (grain, at, series, totals) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT DO UPDATE SET totals = excluded.totals";

/// Adds rows to the roll-ups.
pub(super) struct UsageWriter<'c> {
    connection: &'c Connection,
    /// Series that have a number.
    series: HashMap<Series, i64>,
}

impl<'c> UsageWriter<'c> {
    pub(super) fn new(connection: &'c Connection) -> Self {
        Self {
            connection,
            series: HashMap::new(),
        }
    }

    /// The series of a transaction that was rolled back are not in the table.
    pub(super) fn forget(&mut self) {
        self.series.clear();
    }

    /// Counts rows, within the transaction that writes them.
    pub(super) fn add(&mut self, rows: &[JournalRow], now: UnixMs) -> rusqlite::Result<()> {
        let mut find = self.connection.prepare_cached(TOTALS)?;
        let mut put = self.connection.prepare_cached(PUT)?;
        for (slot, mut totals) in roll_up(rows, now) {
            let (grain, at) = (slot.grain.number(), slot.at.get());
            let series = self.number(slot.series)?;
            let mut found = find.query(params![grain, at, series])?;
            if let Some(row) = found.next()? {
                totals.merge(&Totals::stored(row.get_ref(0)?.as_blob()?));
            }
            drop(found);
            put.execute(params![grain, at, series, totals.encode()])?;
        }
        Ok(())
    }

    fn number(&mut self, series: Series) -> rusqlite::Result<i64> {
        if let Some(number) = self.series.get(&series) {
            return Ok(*number);
        }
        let names = (
            series
                .wallet
                .map_or_else(String::new, |wallet| wallet.to_string()),
            series.key.map_or_else(String::new, |key| key.to_string()),
            &*series.model,
            &*series.channel,
            &*series.endpoint,
        );
        let mut find = self.connection.prepare_cached(SERIES)?;
        let found = find.query_row(names.clone(), |row| row.get(0)).optional()?;
        let number = if let Some(number) = found {
            number
        } else {
            let mut new = self.connection.prepare_cached(NEW_SERIES)?;
            new.query_row(names, |row| row.get(0))?
        };
        if self.series.len() >= CACHED_SERIES_MAX {
            self.series.clear();
        }
        self.series.insert(series, number);
        Ok(number)
    }
}

/// Deletes the roll-ups of minutes that are too old.
pub(super) fn prune(on: &Connection, now: UnixMs) -> rusqlite::Result<()> {
    let mut delete = on.prepare_cached("DELETE FROM usage_totals WHERE grain = ?1 AND at < ?2")?;
    for grain in Grain::MINUTES {
        delete.execute(params![grain.number(), minutes_kept_since(now).get()])?;
    }
    Ok(())
}

/// The number before which rows are still to be counted. `None` if all are counted.
pub(super) fn uncounted(on: &Connection) -> rusqlite::Result<Option<i64>> {
    on.prepare_cached("SELECT before FROM usage_uncounted")?
        .query_row([], |row| row.get(0))
        .optional()
}

/// Remembers which rows are still to be counted.
pub(super) fn set_uncounted(on: &Connection, before: Option<i64>) -> rusqlite::Result<()> {
    match before {
        Some(before) => on.execute("UPDATE usage_uncounted SET before = ?1", [before])?,
        None => on.execute("DELETE FROM usage_uncounted", [])?,
    };
    Ok(())
}

/// Answers a question about usage.
pub(crate) fn usage(on: &Connection, query: UsageQuery) -> rusqlite::Result<Vec<UsageRow>> {
    // The roll-ups of one moment.
    let on = on.unchecked_transaction()?;
    let segments = query.segments();
    let mut report = Report::new(query);
    let mut select = on.prepare_cached(
        "SELECT at, series, totals FROM usage_totals WHERE grain = ?1 AND at >= ?2 AND at < ?3",
    )?;
    for part in segments {
        let range = params![part.grain.number(), part.from.get(), part.to.get()];
        let mut rows = select.query(range)?;
        while let Some(row) = rows.next()? {
            let totals = row.get_ref(2)?.as_blob()?;
            report.add(UnixMs::new(row.get(0)?), row.get(1)?, totals);
        }
    }
    let mut find = on.prepare_cached(
        "SELECT wallet, key, model, channel, endpoint FROM usage_series WHERE n = ?1",
    )?;
    let mut series = HashMap::new();
    for number in report.series() {
        series.insert(number, find.query_row([number], read_series)?);
    }
    Ok(report.finish(&series))
}

fn read_series(row: &Row<'_>) -> rusqlite::Result<Series> {
    let text = |column| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
    Ok(Series {
        wallet: WalletId::parse(text(0)?).ok(),
        key: KeyId::parse(text(1)?).ok(),
        model: text(2)?.into(),
        channel: text(3)?.into(),
        endpoint: text(4)?.to_owned().into(),
    })
}
