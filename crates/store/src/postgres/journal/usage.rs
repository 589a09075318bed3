//! Stores the roll-ups of the journal, which are counted with its rows, and reads them for reports.

use std::collections::HashMap;
use std::sync::Arc;

use ledger::UnixMs;
use tokio_postgres::{Client, Row};

use super::rows::plain;
use crate::postgres::connection::errors::PgError;
use crate::records::ids::{KeyId, WalletId};
use crate::records::journal::JournalRow;
use crate::usage::{
    Added, Grain, KnownSeries, PackedTotals, Report, Series, SeriesNumbers, Totals, UsageCounts,
    UsageQuery, UsageRow, minutes_kept_since, parts_of,
};

/// The lock that a node holds while it reads totals, adds to them and writes them back.
const LOCK: &str =
    "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' tollgate usage', 0))";
/// Inserts the series that are new. `SERIES` then returns the numbers of all.
const NEW_SERIES: &str = "INSERT INTO usage_series (wallet, key, model, channel, endpoint)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) ON CONFLICT DO NOTHING";
const SERIES: &str = "SELECT a.place, s.n
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])
         WITH ORDINALITY AS a (wallet, key, model, channel, endpoint, place)
    JOIN usage_series s USING (wallet, key, model, channel, endpoint)";
const TOTALS: &str = "SELECT a.place, t.totals
    FROM unnest($1::smallint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS a (grain, at, series, place)
    JOIN usage_totals t USING (grain, at, series)";
const PUT: &str = "INSERT INTO usage_totals (grain, at, series, totals)
    SELECT * FROM unnest($1::smallint[], $2::bigint[], $3::bigint[], $4::bytea[])
    ON CONFLICT (grain, at, series) DO UPDATE SET totals = excluded.totals";

/// Adds journal rows to the roll-ups.
#[derive(Default)]
pub(super) struct UsageWriter {
    known: KnownSeries,
}

impl UsageWriter {
    /// Forgets all known series. After a rollback, the table may lack some of them.
    pub(super) fn forget(&mut self) {
        self.known.forget();
    }

    /// Counts rows, within the transaction that writes them.
    pub(super) async fn add(
        &mut self,
        on: &Client,
        rows: &[JournalRow],
        now: UnixMs,
    ) -> Result<(), PgError> {
        let counts = UsageCounts::of(rows);
        // Series get their numbers before the lock is taken, so that other nodes wait less.
        self.number(on, &counts).await?;
        let counts = counts.numbered(|series| self.known.get(series));
        let slots = counts.roll_up(&Grain::ALL, now);
        let (mut grains, mut times, mut series) = (Vec::new(), Vec::new(), Vec::new());
        for (slot, _) in &slots {
            grains.push(slot.grain.number());
            times.push(slot.at.get());
            series.push(slot.series);
        }
        on.batch_execute(LOCK).await?;
        let mut totals: Vec<Totals> = slots.into_iter().map(|(_, totals)| totals).collect();
        for row in on.query(TOTALS, &[&grains, &times, &series]).await? {
            let place: i64 = row.try_get(0)?;
            let place = usize::try_from(place - 1).ok();
            if let Some(totals) = place.and_then(|place| totals.get_mut(place)) {
                totals.merge(&Totals::stored(row.try_get(1)?));
            }
        }
        let totals: Vec<Vec<u8>> = totals.iter().map(Totals::encode).collect();
        on.execute(PUT, &[&grains, &times, &series, &totals])
            .await?;
        self.known.age();
        Ok(())
    }

    /// Looks up the numbers of all series that are not known yet.
    async fn number(&mut self, on: &Client, counts: &UsageCounts) -> Result<(), PgError> {
        let unknown: Vec<&Series> = counts
            .series()
            .filter(|series| self.known.get(series).is_none())
            .collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let mut parts: Vec<Series> = unknown.iter().flat_map(|series| parts_of(series)).collect();
        // All nodes insert in the same order, so that they cannot deadlock.
        parts.sort_unstable();
        parts.dedup();
        let found = look_up(on, &parts).await?;
        for series in unknown {
            let numbers = SeriesNumbers::find(series, |part| found.get(&part).copied().ok_or(()));
            if let Ok(numbers) = numbers {
                self.known.insert(series.clone(), numbers);
            }
        }
        Ok(())
    }
}

/// The numbers of series. Inserts new series first.
async fn look_up(on: &Client, series: &[Series]) -> Result<HashMap<Series, i64>, PgError> {
    let texts = |text: fn(&Series) -> String| -> Vec<String> {
        series
            .iter()
            .map(|series| plain(&text(series)).into_owned())
            .collect()
    };
    let wallets = texts(|series| series.wallet.map_or_else(String::new, |id| id.to_string()));
    let keys = texts(|series| series.key.map_or_else(String::new, |id| id.to_string()));
    let models = texts(|series| series.model.to_string());
    let channels = texts(|series| series.channel.to_string());
    let endpoints = texts(|series| series.endpoint.to_string());
    let mut numbers = HashMap::new();
    for statement in [NEW_SERIES, SERIES] {
        let found = on
            .query(
                statement,
                &[&wallets, &keys, &models, &channels, &endpoints],
            )
            .await?;
        for row in found {
            let place: i64 = row.try_get(0)?;
            let place = usize::try_from(place - 1).ok();
            if let Some(series) = place.and_then(|place| series.get(place)) {
                numbers.insert(series.clone(), row.try_get(1)?);
            }
        }
    }
    Ok(numbers)
}

/// Deletes the roll-ups of minutes that are too old.
pub(super) async fn prune(on: &Client, now: UnixMs) -> Result<(), tokio_postgres::Error> {
    let delete = "DELETE FROM usage_totals WHERE grain = $1 AND at < $2";
    for grain in Grain::MINUTES {
        let before = minutes_kept_since(now).get();
        on.execute(delete, &[&grain.number(), &before]).await?;
    }
    Ok(())
}

/// The time since which all grains are complete. `None` if they have always been complete.
async fn long_steps_since(on: &Client) -> Result<Option<UnixMs>, tokio_postgres::Error> {
    let since = on.query_opt("SELECT since FROM usage_long_steps", &[]);
    let since = since.await?.map(|row| row.try_get(0)).transpose()?;
    Ok(since.map(UnixMs::new))
}

/// Answers a usage query. Returns `None` if the answer would consist of too many totals.
pub(crate) async fn usage(
    on: Arc<Client>,
    query: UsageQuery,
) -> Result<Option<Vec<UsageRow>>, tokio_postgres::Error> {
    // All totals of a step are returned as one value. Grouping them by series would make the database sort them, which
    // takes longer than everything else.
    let select = |of_series: &str| {
        format!(
            "SELECT at, string_agg(int8send(series) || int4send(length(totals)) || totals, ''::bytea) FROM (
                SELECT at, series, totals FROM usage_totals
                WHERE grain = $1 AND at >= $2 AND at < $3 {of_series} LIMIT $4) parts
            GROUP BY at"
        )
    };
    let series = series_of_account(&on, &query).await?;
    let select = match &series {
        Some(_) => select("AND series = ANY($5)"),
        None => select("AND $5::bigint[] IS NULL"),
    };
    let segments = query.segments(long_steps_since(&on).await?);
    let mut report = Report::new(query);
    for part in segments {
        let (grain, from, to) = (part.grain.number(), part.from.get(), part.to.get());
        let room = i64::try_from(report.room()).unwrap_or(i64::MAX);
        let rows = on
            .query(&select, &[&grain, &from, &to, &room, &series])
            .await?;
        name_series(&on, &mut report, &rows).await?;
        for row in &rows {
            let at = UnixMs::new(row.try_get(0)?);
            for (series, totals) in PackedTotals::new(row.try_get(1)?) {
                if report.add(at, series, totals) == Added::TooMany {
                    return Ok(None);
                }
            }
        }
    }
    Ok(Some(report.finish()))
}

async fn series_of_account(
    on: &Client,
    query: &UsageQuery,
) -> Result<Option<Vec<i64>>, tokio_postgres::Error> {
    if query.wallet.is_none() && query.key.is_none() {
        return Ok(None);
    }
    let select = "SELECT n FROM usage_series WHERE ($1::text IS NULL OR wallet = $1)
        AND ($2::text IS NULL OR key = $2)";
    let wallet = query.wallet.map(|wallet| wallet.to_string());
    let key = query.key.map(|key| key.to_string());
    let found = on.query(select, &[&wallet, &key]).await?;
    let numbers: Result<Vec<i64>, _> = found.iter().map(|row| row.try_get(0)).collect();
    Ok(Some(numbers?))
}

/// Looks up the names of series that the report does not know yet.
async fn name_series(
    on: &Client,
    report: &mut Report,
    rows: &[Row],
) -> Result<(), tokio_postgres::Error> {
    let mut unknown = Vec::new();
    for row in rows {
        let series = PackedTotals::new(row.try_get(1)?).map(|(series, _)| series);
        unknown.extend(series.filter(|number| !report.knows(*number)));
    }
    if unknown.is_empty() {
        return Ok(());
    }
    unknown.sort_unstable();
    unknown.dedup();
    let select =
        "SELECT n, wallet, key, model, channel, endpoint FROM usage_series WHERE n = ANY($1)";
    for row in &on.query(select, &[&unknown]).await? {
        let (number, series) = read_series(row)?;
        report.name(number, &series);
    }
    Ok(())
}

fn read_series(row: &Row) -> Result<(i64, Series), tokio_postgres::Error> {
    let text = |column| row.try_get::<_, &str>(column);
    let series = Series {
        wallet: WalletId::parse(text(1)?).ok(),
        key: KeyId::parse(text(2)?).ok(),
        model: text(3)?.into(),
        channel: text(4)?.into(),
        endpoint: text(5)?.to_owned().into(),
    };
    Ok((row.try_get(0)?, series))
}
