//! Reads the roll-ups of the journal for usage reports.

use std::collections::{HashMap, HashSet};

use ledger::UnixMs;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::usage::{TOTALS, read_pending};
use crate::records::ids::{KeyId, WalletId};
use crate::usage::{
    Added, Grain, NumberedCounts, Report, Segment, Series, UsageQuery, UsageRow, UsageStep,
};

/// The maximum number of totals that a report about a wallet or key looks up one by one for a segment of its time
/// range. Above that, the report reads all totals of the segment.
const LOOKUPS_MAX: usize = 200_000;

/// Answers a usage query. Returns `None` if the report would read too many totals or have too many rows.
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

/// The time since which all grains are complete. `None` if they have always been complete.
fn long_steps_since(on: &Connection) -> rusqlite::Result<Option<UnixMs>> {
    on.prepare_cached("SELECT since FROM usage_long_steps")?
        .query_row([], |row| row.get(0).map(UnixMs::new))
        .optional()
}

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
    /// Whether the series counts all calls of the key (or of the wallet, if there is no key), regardless of model and
    /// endpoint.
    is_of_all_calls: bool,
}

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
    use std::time::{Duration, Instant};

    use super::*;
    use crate::records::journal::JournalRow;
    use crate::sqlite::connection::open::prepared;
    use crate::sqlite::journal::usage::UsageWriter;
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
}
