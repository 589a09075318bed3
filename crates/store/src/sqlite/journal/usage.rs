//! Stores the roll-ups of the journal, which are counted with its rows, and reads them for reports.
//!
//! A batch adds directly to the roll-ups of traffic, which have few series. The roll-ups of wallets and keys may have
//! as many series as the batch has calls, so a batch stores its counts for them in `usage_pending`. Later the counts of
//! many batches are added to these roll-ups together. Reports read both.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use ledger::UnixMs;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::cache::{IdMap, IdSet};
use crate::records::ids::{KeyId, WalletId};
use crate::records::journal::JournalRow;
use crate::sqlite::connection::connect::begin_write;
use crate::usage::{
    Added, Grain, KnownSeries, NumberedCounts, Report, Segment, Series, SeriesNumbers, Slot,
    Totals, UsageCounts, UsageQuery, UsageRow, UsageStep, minutes_kept_since, pending,
};

/// The maximum number of totals per wallet or key that a report looks up one by one. Above that, it reads all totals of
/// the time range.
const LOOKUPS_MAX: usize = 200_000;

const SERIES: &str = "SELECT n FROM usage_series
    WHERE wallet = ?1 AND key = ?2 AND model = ?3 AND channel = ?4 AND endpoint = ?5";
const NEW_SERIES: &str = "INSERT INTO usage_series (wallet, key, model, channel, endpoint)
    VALUES (?1, ?2, ?3, ?4, ?5)";
const TOTALS: &str = "SELECT totals FROM usage_totals WHERE grain = ?1 AND at = ?2 AND series = ?3";
/// The maximum number of cached series without a key.
const SHARED_MAX: usize = 16_384;
/// How long pending counts wait for those of further batches.
const PENDING_FOR: Duration = Duration::from_secs(15);
/// With this many pairs of series and minute, pending counts are added at once, because a report has to read them all.
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

    /// Forgets all known series, because those of a rolled-back transaction are not in the table.
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

    /// Adds the pending counts to the roll-ups.
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

    /// The number of a series in the table, where it is added if it is new.
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
        // Not `RETURNING`: SQLite makes a temporary table for the rows that it returns.
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

/// Reads the pending counts.
fn read_pending(on: &Connection) -> rusqlite::Result<NumberedCounts> {
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
    // Not one statement with `ON CONFLICT`: to be able to undo itself, it would copy every page that it changes.
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

/// Stores the number before which rows are not counted yet.
pub(super) fn set_uncounted(on: &Connection, before: Option<i64>) -> rusqlite::Result<()> {
    match before {
        Some(before) => on.execute("UPDATE usage_uncounted SET before = ?1", [before])?,
        None => on.execute("DELETE FROM usage_uncounted", [])?,
    };
    Ok(())
}

/// The time since which all grains are complete. `None` if they have always been complete.
fn long_steps_since(on: &Connection) -> rusqlite::Result<Option<UnixMs>> {
    on.prepare_cached("SELECT since FROM usage_long_steps")?
        .query_row([], |row| row.get(0).map(UnixMs::new))
        .optional()
}

/// Answers a usage query. Returns `None` if the answer would consist of too many totals.
pub(crate) fn usage(on: &Connection, query: UsageQuery) -> rusqlite::Result<Option<Vec<UsageRow>>> {
    // One transaction, so that all roll-ups are read at the same moment.
    let on = on.unchecked_transaction()?;
    let segments = query.segments(long_steps_since(&on)?);
    let series = series_of_account(&on, &query)?;
    let needs_pending = segments
        .iter()
        .any(|part| Grain::OF_ACCOUNTS.contains(&part.grain));
    let pending = if needs_pending {
        read_pending(&on)?
    } else {
        NumberedCounts::default()
    };
    let mut reader = ReportReader {
        on: &on,
        report: Report::new(query),
    };
    for part in segments {
        if reader.add_pending(part, series.as_deref(), &pending)? == Added::TooMany {
            return Ok(None);
        }
        let added = match lookups(part, series.as_deref()) {
            Some((steps, series)) if part.grain == Grain::CallHour => {
                reader.look_up_by_day(&steps, &series)?
            }
            Some((steps, series)) => {
                let numbers: Vec<i64> = series.iter().map(|it| it.number).collect();
                reader.look_up(part.grain, &steps, &numbers)?
            }
            None => reader.read(part)?,
        };
        if added == Added::TooMany {
            return Ok(None);
        }
    }
    Ok(Some(reader.report.finish()))
}

/// The series of the requested wallet or key.
fn series_of_account(
    on: &Connection,
    query: &UsageQuery,
) -> rusqlite::Result<Option<Vec<AccountSeries>>> {
    // The index begins with the wallet. A key's wallet is known as long as the journal has rows of the key.
    let wallet = match (query.wallet, query.key) {
        (None, None) => return Ok(None),
        (Some(wallet), _) => Some(wallet.to_string()),
        (None, Some(key)) => {
            let wallet =
                "SELECT w.name FROM names k JOIN names w ON w.n = k.wallet WHERE k.name = ?1";
            let mut find = on.prepare_cached(wallet)?;
            find.query_row([key.to_string()], |row| row.get(0))
                .optional()?
        }
    };
    let select = match wallet {
        Some(_) => {
            "SELECT n, key, endpoint = '' FROM usage_series WHERE wallet = ?1 AND (?2 IS NULL OR key = ?2)"
        }
        None => "SELECT n, key, endpoint = '' FROM usage_series WHERE ?1 IS NULL AND key = ?2",
    };
    let mut select = on.prepare_cached(select)?;
    let key = query.key.map(|key| key.to_string());
    let found = select.query_map(params![wallet, key], |row| {
        Ok(AccountSeries {
            number: row.get(0)?,
            key: row.get(1)?,
            is_of_all_calls: row.get(2)?,
        })
    })?;
    Ok(Some(found.collect::<rusqlite::Result<_>>()?))
}

/// The steps and series to look up one by one. `None` if it is cheaper to read all totals of the time range.
fn lookups(
    part: Segment,
    series: Option<&[AccountSeries]>,
) -> Option<(Vec<UnixMs>, Vec<&AccountSeries>)> {
    let counted = |series: &&AccountSeries| part.grain.counts_keys() || series.key.is_empty();
    let counted: Vec<&AccountSeries> = series?.iter().filter(counted).collect();
    let steps = part.steps(LOOKUPS_MAX / counted.len().max(1))?;
    Some((steps, counted))
}

/// A series of one wallet.
struct AccountSeries {
    number: i64,
    /// Empty if the series has no key.
    key: Box<str>,
    /// Whether the series counts all calls of the key, regardless of model and endpoint.
    is_of_all_calls: bool,
}

/// Reads the totals of a report.
struct ReportReader<'c> {
    on: &'c Connection,
    report: Report,
}

impl ReportReader<'_> {
    /// Looks up hourly totals. Most keys have calls on few days, so the totals of days are looked up first, and then
    /// only the hours of those days.
    fn look_up_by_day(
        &mut self,
        hours: &[UnixMs],
        series: &[&AccountSeries],
    ) -> rusqlite::Result<Added> {
        let of_all_calls = series.iter().filter(|it| it.is_of_all_calls);
        let by_key: HashMap<&str, i64> = of_all_calls.map(|it| (&*it.key, it.number)).collect();
        let day_of = |hour: &UnixMs| UsageStep::Day.start_of(*hour);
        for hours in hours.chunk_by(|one, other| day_of(one) == day_of(other)) {
            let Some(day) = hours.first().map(day_of) else {
                continue;
            };
            let mut idle = HashSet::new();
            for (key, number) in &by_key {
                if !self.has_totals(Grain::KeyDay, day, *number)? {
                    idle.insert(*key);
                }
            }
            let active = series.iter().filter(|it| !idle.contains(&*it.key));
            let active: Vec<i64> = active.map(|it| it.number).collect();
            if self.look_up(Grain::CallHour, hours, &active)? == Added::TooMany {
                return Ok(Added::TooMany);
            }
        }
        Ok(Added::Yes)
    }

    fn has_totals(&self, grain: Grain, at: UnixMs, series: i64) -> rusqlite::Result<bool> {
        let mut find = self.on.prepare_cached(TOTALS)?;
        find.exists(params![grain.number(), at.get(), series])
    }

    fn look_up(
        &mut self,
        grain: Grain,
        steps: &[UnixMs],
        series: &[i64],
    ) -> rusqlite::Result<Added> {
        for number in series {
            self.name(*number)?;
        }
        let mut find = self.on.prepare_cached(TOTALS)?;
        for at in steps {
            for number in series {
                let mut rows = find.query(params![grain.number(), at.get(), number])?;
                if let Some(row) = rows.next()? {
                    let totals = row.get_ref(0)?.as_blob()?;
                    if self.report.add(*at, *number, totals) == Added::TooMany {
                        return Ok(Added::TooMany);
                    }
                }
            }
        }
        Ok(Added::Yes)
    }

    /// Adds the pending counts, which the roll-ups of wallets and keys do not contain yet.
    fn add_pending(
        &mut self,
        part: Segment,
        series: Option<&[AccountSeries]>,
        pending: &NumberedCounts,
    ) -> rusqlite::Result<Added> {
        if !Grain::OF_ACCOUNTS.contains(&part.grain) {
            return Ok(Added::Yes);
        }
        let of_account =
            series.map(|series| series.iter().map(|it| it.number).collect::<HashSet<i64>>());
        for (at, number, totals) in pending.of_grain(part.grain) {
            let is_asked_for = (part.from..part.to).contains(&at)
                && of_account.as_ref().is_none_or(|it| it.contains(&number));
            if is_asked_for {
                self.name(number)?;
                if self.report.add_totals(at, number, totals) == Added::TooMany {
                    return Ok(Added::TooMany);
                }
            }
        }
        Ok(Added::Yes)
    }

    fn read(&mut self, part: Segment) -> rusqlite::Result<Added> {
        let mut select = self.on.prepare_cached(
            "SELECT at, series, totals FROM usage_totals WHERE grain = ?1 AND at >= ?2 AND at < ?3",
        )?;
        let range = params![part.grain.number(), part.from.get(), part.to.get()];
        let mut rows = select.query(range)?;
        while let Some(row) = rows.next()? {
            let (at, number) = (UnixMs::new(row.get(0)?), row.get(1)?);
            self.name(number)?;
            let totals = row.get_ref(2)?.as_blob()?;
            if self.report.add(at, number, totals) == Added::TooMany {
                return Ok(Added::TooMany);
            }
        }
        Ok(Added::Yes)
    }

    fn name(&mut self, number: i64) -> rusqlite::Result<()> {
        if !self.report.knows(number) {
            let mut find = self.on.prepare_cached(
                "SELECT wallet, key, model, channel, endpoint FROM usage_series WHERE n = ?1",
            )?;
            let series = find.query_row([number], read_series)?;
            self.report.name(number, &series);
        }
        Ok(())
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::connection::open::prepared;
    use crate::sqlite::schema::migrations::Schema;
    use crate::usage::Dimension;

    const NOW: UnixMs = UnixMs::new(1_800_000_000_000);

    fn row(wallet: WalletId, key: KeyId, ago_ms: i64) -> JournalRow {
        JournalRow {
            at: NOW.minus_ms(ago_ms),
            wallet: Some(wallet),
            key: Some(key),
            endpoint: "/v1/x".into(),
            ..JournalRow::default()
        }
    }

    fn stored(on: &Connection, table: &str) -> i64 {
        let count = format!("SELECT count(*) FROM {table}");
        on.query_row(&count, [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn reports_tell_the_same_before_and_after_counts_are_added_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let on = prepared(&path, Schema::Journal, Duration::ZERO).unwrap();
        let (wallet, other_wallet) = (WalletId::random(), WalletId::random());
        let (key, other_key) = (KeyId::random(), KeyId::random());
        let day = 24 * 3_600_000;
        let batches = [
            vec![row(wallet, key, 0), row(wallet, other_key, 90_000)],
            vec![
                row(wallet, key, 10),
                row(other_wallet, KeyId::random(), 40 * day),
            ],
            vec![row(wallet, key, 2 * day)],
        ];
        let query = UsageQuery {
            by: vec![Dimension::Wallet, Dimension::Key],
            ..UsageQuery::between(NOW.minus_ms(60 * day), NOW.plus_ms(60_000), NOW)
        };
        let queries = [
            query.clone(),
            UsageQuery {
                wallet: Some(wallet),
                step: Some(UsageStep::Hour),
                ..query.clone()
            },
            UsageQuery {
                key: Some(key),
                step: Some(UsageStep::Minute),
                from: NOW.minus_ms(3_600_000),
                ..query
            },
        ];
        let reports = || {
            queries
                .clone()
                .map(|query| usage(&on, query).unwrap().unwrap())
        };
        let requests = |rows: &[UsageRow]| rows.iter().map(|row| row.totals.requests).sum::<u64>();

        let mut writer = UsageWriter::new(&on);
        for batch in &batches {
            writer.add(batch, NOW).unwrap();
        }
        assert_eq!(stored(&on, "usage_pending"), 3);
        let before = reports();
        assert_eq!(before.each_ref().map(|rows| requests(rows)), [5, 4, 2]);

        // A killed process leaves its pending counts to the next process, which adds them at once.
        let mut next = UsageWriter::new(&on);
        assert!(next.pending_due().is_some_and(|due| due <= Instant::now()));
        next.add_pending(NOW);
        assert_eq!(
            (stored(&on, "usage_pending"), next.pending_due()),
            (0, None)
        );
        assert_eq!(reports(), before);
        next.add_pending(NOW);
        assert_eq!(reports(), before);

        // Later batches are added to the existing totals.
        next.add(&batches[0], NOW).unwrap();
        assert!(next.pending_due().is_some());
        let [all, ..] = reports();
        assert_eq!(requests(&all), 7);
        next.add_pending(NOW);
        assert_eq!(reports()[0], all);
    }

    #[test]
    fn many_series_do_not_wait() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let on = prepared(&path, Schema::Journal, Duration::ZERO).unwrap();
        let mut writer = UsageWriter::new(&on);
        writer.add_pending(NOW);
        let wallet = WalletId::random();
        let rows = |count: usize| -> Vec<JournalRow> {
            let keys = std::iter::repeat_with(KeyId::random);
            keys.take(count).map(|key| row(wallet, key, 0)).collect()
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
