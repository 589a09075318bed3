//! Stores the roll-ups of the journal, which are counted with its rows.
//!
//! A batch adds directly to the roll-ups of traffic, which have few series. The roll-ups of wallets and keys may have
//! as many series as the batch has calls, so a batch stores its counts for them in `usage_pending`. Later the counts of
//! many batches are added to these roll-ups together. Reports (`usage_report`) read both.

use std::time::{Duration, Instant};

use ledger::UnixMs;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::cache::{IdMap, IdSet};
use crate::records::journal::JournalRow;
use crate::sqlite::connection::connect::begin_write;
use crate::usage::{
    Grain, KnownSeries, NumberedCounts, Series, SeriesNumbers, Slot, Totals, UsageCounts,
    minutes_kept_since, pending,
};

const SERIES: &str = "SELECT n FROM usage_series
    WHERE wallet = ?1 AND key = ?2 AND model = ?3 AND channel = ?4 AND endpoint = ?5";
const NEW_SERIES: &str = "INSERT INTO usage_series (wallet, key, model, channel, endpoint)
    VALUES (?1, ?2, ?3, ?4, ?5)";
pub(super) const TOTALS: &str =
    "SELECT totals FROM usage_totals WHERE grain = ?1 AND at = ?2 AND series = ?3";
/// The maximum number of cached series without a key.
const SHARED_MAX: usize = 16_384;
/// How long counts are collected from further batches before they are added.
const PENDING_FOR: Duration = Duration::from_secs(15);
/// Pending counts for this many pairs of series and minute are added at once, because a report has to read them all.
const PENDING_MAX: usize = 4_096;
/// The pause before a retry, if pending counts could not be added.
const PENDING_AGAIN: Duration = Duration::from_secs(60);

const NEW_TOTALS: &str =
    "INSERT INTO usage_totals (grain, at, series, totals) VALUES (?1, ?2, ?3, ?4)";
const CHANGED_TOTALS: &str =
    "UPDATE usage_totals SET totals = ?4 WHERE grain = ?1 AND at = ?2 AND series = ?3";

/// Adds journal rows to the roll-ups.
pub(super) struct UsageWriter<'c> {
    connection: &'c Connection,
    known: KnownSeries,
    /// The numbers of series without a key, which calls of many keys share.
    shared: IdMap<Series, i64>,
    /// The pending counts in `usage_pending`, as far as this writer knows.
    pending: IdSet<(SeriesNumbers, UnixMs)>,
    /// When to add the pending counts. `None` if there are none.
    pending_due: Option<Instant>,
}

impl<'c> UsageWriter<'c> {
    pub(super) fn new(connection: &'c Connection) -> Self {
        Self {
            connection,
            known: KnownSeries::default(),
            shared: IdMap::default(),
            pending: IdSet::default(),
            // An earlier process may have left pending counts.
            pending_due: Some(Instant::now()),
        }
    }

    /// When [`Self::add_pending`] should be called.
    pub(super) fn pending_due(&self) -> Option<Instant> {
        self.pending_due
    }

    /// Forgets all known series. After a rollback, the table may lack some of them.
    pub(super) fn forget(&mut self) {
        self.known.forget();
        self.shared.clear();
    }

    /// Counts rows, within the transaction that writes them.
    pub(super) fn add(&mut self, rows: &[JournalRow], now: UnixMs) -> rusqlite::Result<()> {
        let counts = UsageCounts::of(rows);
        for series in counts.series() {
            if self.known.get(series).is_none() {
                let numbers = SeriesNumbers::find(series, |part| self.number(part))?;
                self.known.insert(series.clone(), numbers);
            }
        }
        let counts = counts.numbered(|series| self.known.get(series));
        self.known.age();
        add_to_totals(self.connection, counts.roll_up(&Grain::OF_TRAFFIC, now))?;
        let mut leave = self
            .connection
            .prepare_cached("INSERT INTO usage_pending (counts) VALUES (?1)")?;
        leave.execute([pending::encode(&counts)])?;
        let waiting = counts.iter().map(|(numbers, minute, _)| (numbers, minute));
        self.pending.extend(waiting);
        let due = self.pending_due.get_or_insert(Instant::now() + PENDING_FOR);
        if self.pending.len() >= PENDING_MAX {
            *due = Instant::now();
        }
        Ok(())
    }

    pub(super) fn add_pending(&mut self, now: UnixMs) {
        self.pending.clear();
        self.pending_due = match add_pending(self.connection, now) {
            Ok(()) => None,
            Err(error) => {
                tracing::warn!(%error, "the usage of wallets and keys could not be added up");
                Some(Instant::now() + PENDING_AGAIN)
            }
        };
    }

    fn number(&mut self, series: Series) -> rusqlite::Result<i64> {
        if let Some(number) = self.shared.get(&series) {
            return Ok(*number);
        }
        let number = self.stored_number(&series)?;
        if series.key.is_none() {
            if self.shared.len() >= SHARED_MAX {
                self.shared.clear();
            }
            self.shared.insert(series, number);
        }
        Ok(number)
    }

    /// Returns the number of a series in the table. Adds the series if it is new.
    fn stored_number(&self, series: &Series) -> rusqlite::Result<i64> {
        let names = (
            id_text(series.wallet),
            id_text(series.key),
            &*series.model,
            &*series.channel,
            &*series.endpoint,
        );
        let mut find = self.connection.prepare_cached(SERIES)?;
        if let Some(number) = find.query_row(names.clone(), |row| row.get(0)).optional()? {
            return Ok(number);
        }
        // `RETURNING` would make SQLite create a temporary table for the rows that it returns.
        self.connection.prepare_cached(NEW_SERIES)?.execute(names)?;
        Ok(self.connection.last_insert_rowid())
    }
}

/// Adds the pending counts to the roll-ups, in a transaction of its own.
pub(crate) fn add_pending(on: &Connection, now: UnixMs) -> rusqlite::Result<()> {
    let transaction = begin_write(on)?;
    let counts = read_pending(&transaction)?;
    add_to_totals(&transaction, counts.roll_up(&Grain::OF_ACCOUNTS, now))?;
    transaction
        .prepare_cached("DELETE FROM usage_pending")?
        .execute([])?;
    transaction.commit()
}

pub(super) fn read_pending(on: &Connection) -> rusqlite::Result<NumberedCounts> {
    let mut counts = NumberedCounts::default();
    let mut select = on.prepare_cached("SELECT counts FROM usage_pending")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        if pending::decode(row.get_ref(0)?.as_blob()?, &mut counts).is_none() {
            tracing::error!("counts of usage are damaged and left out");
        }
    }
    Ok(counts)
}

fn add_to_totals(on: &Connection, slots: Vec<(Slot, Totals)>) -> rusqlite::Result<()> {
    let mut find = on.prepare_cached(TOTALS)?;
    // One statement with `ON CONFLICT` would copy every page that it changes, to be able to undo itself.
    let mut insert = on.prepare_cached(NEW_TOTALS)?;
    let mut update = on.prepare_cached(CHANGED_TOTALS)?;
    for (slot, mut totals) in slots {
        let (grain, at) = (slot.grain.number(), slot.at.get());
        let mut found = find.query(params![grain, at, slot.series])?;
        let put = match found.next()? {
            Some(row) => {
                totals.merge(&Totals::stored(row.get_ref(0)?.as_blob()?));
                &mut update
            }
            None => &mut insert,
        };
        drop(found);
        put.execute(params![grain, at, slot.series, totals.encode()])?;
    }
    Ok(())
}

fn id_text(id: Option<impl ToString>) -> String {
    id.map_or_else(String::new, |id| id.to_string())
}

/// Deletes the roll-ups of minutes that are too old.
pub(super) fn prune(on: &Connection, now: UnixMs) -> rusqlite::Result<()> {
    let mut delete = on.prepare_cached("DELETE FROM usage_totals WHERE grain = ?1 AND at < ?2")?;
    for grain in Grain::MINUTES {
        delete.execute(params![grain.number(), minutes_kept_since(now).get()])?;
    }
    Ok(())
}

/// Rows before this number are not counted yet. `None` if all rows are counted.
pub(super) fn uncounted(on: &Connection) -> rusqlite::Result<Option<i64>> {
    on.prepare_cached("SELECT before FROM usage_uncounted")?
        .query_row([], |row| row.get(0))
        .optional()
}

pub(super) fn set_uncounted(on: &Connection, before: Option<i64>) -> rusqlite::Result<()> {
    match before {
        Some(before) => on.execute("UPDATE usage_uncounted SET before = ?1", [before])?,
        None => on.execute("DELETE FROM usage_uncounted", [])?,
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::ids::{KeyId, WalletId};
    use crate::sqlite::connection::open::prepared;
    use crate::sqlite::schema::migrations::Schema;

    const NOW: UnixMs = UnixMs::new(1_800_000_000_000);

    #[test]
    fn many_series_do_not_wait() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let on = prepared(&path, Schema::Journal, Duration::ZERO).unwrap();
        let mut writer = UsageWriter::new(&on);
        writer.add_pending(NOW);
        let wallet = WalletId::random();
        let row = |key| JournalRow {
            at: NOW,
            wallet: Some(wallet),
            key: Some(key),
            endpoint: "/v1/x".into(),
            ..JournalRow::default()
        };
        let rows = |count: usize| -> Vec<JournalRow> {
            let keys = std::iter::repeat_with(KeyId::random);
            keys.take(count).map(row).collect()
        };
        writer.add(&rows(PENDING_MAX - 1), NOW).unwrap();
        assert!(writer.pending_due().is_some_and(|due| due > Instant::now()));
        writer.add(&rows(1), NOW).unwrap();
        assert!(
            writer
                .pending_due()
                .is_some_and(|due| due <= Instant::now())
        );
    }
}
