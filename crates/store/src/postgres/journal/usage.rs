//! The roll-ups of the journal: written with its rows, read for reports.

use std::collections::HashMap;
use std::sync::Arc;

use ledger::UnixMs;
use tokio_postgres::{Client, Row};

use super::rows::plain;
use crate::postgres::connection::errors::PgError;
use crate::records::ids::{KeyId, WalletId};
use crate::records::journal::JournalRow;
use crate::usage::{
    Grain, Report, RollUp, Series, Totals, UsageQuery, UsageRow, minutes_kept_since, roll_up,
};

const CACHED_SERIES_MAX: usize = 65_536;
/// One node at a time adds to the roll-ups: it reads totals, adds to them and writes them back.
const LOCK: &str =
    "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' tollgate usage', 0))";
/// Series that are new get a number, and all are looked up.
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

/// Adds rows to the roll-ups.
#[derive(Default)]
pub(super) struct UsageWriter {
    /// Series that have a number.
    series: HashMap<Series, i64>,
}

impl UsageWriter {
    /// The series of a transaction that was rolled back are not in the table.
    pub(super) fn forget(&mut self) {
        self.series.clear();
    }

    /// Counts rows, within the transaction that writes them.
    pub(super) async fn add(
        &mut self,
        on: &Client,
        rows: &[JournalRow],
        now: UnixMs,
    ) -> Result<(), PgError> {
        let slots = roll_up(rows, now);
        on.batch_execute(LOCK).await?;
        self.number(on, &slots).await?;
        // Texts that differ only in what the database does not store have one number.
        let mut merged: HashMap<(i16, i64, i64), Totals> = HashMap::new();
        for (slot, sums) in slots {
            if let Some(number) = self.series.get(&slot.series) {
                let place = (slot.grain.number(), slot.at.get(), *number);
                merged.entry(place).or_default().merge(&sums);
            }
        }
        let mut totals = Vec::with_capacity(merged.len());
        let (mut grains, mut times, mut series) = (Vec::new(), Vec::new(), Vec::new());
        for ((grain, at, number), sums) in merged {
            grains.push(grain);
            times.push(at);
            series.push(number);
            totals.push(sums);
        }
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
        Ok(())
    }

    /// Gives every series a number.
    async fn number(&mut self, on: &Client, slots: &RollUp) -> Result<(), PgError> {
        if self.series.len() >= CACHED_SERIES_MAX {
            self.series.clear();
        }
        let mut unknown: Vec<&Series> = slots
            .keys()
            .map(|slot| &slot.series)
            .filter(|series| !self.series.contains_key(*series))
            .collect();
        unknown.sort_unstable();
        unknown.dedup();
        if unknown.is_empty() {
            return Ok(());
        }
        self.look_up(on, &unknown).await
    }

    async fn look_up(&mut self, on: &Client, unknown: &[&Series]) -> Result<(), PgError> {
        let texts = |text: fn(&Series) -> String| -> Vec<String> {
            unknown
                .iter()
                .map(|series| plain(&text(series)).into_owned())
                .collect()
        };
        let wallets = texts(|series| series.wallet.map_or_else(String::new, |id| id.to_string()));
        let keys = texts(|series| series.key.map_or_else(String::new, |id| id.to_string()));
        let models = texts(|series| series.model.to_string());
        let channels = texts(|series| series.channel.to_string());
        let endpoints = texts(|series| series.endpoint.to_string());
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
                if let Some(series) = place.and_then(|place| unknown.get(place)) {
                    self.series.insert((*series).clone(), row.try_get(1)?);
                }
            }
        }
        Ok(())
    }
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

/// Answers a question about usage.
pub(crate) async fn usage(
    on: Arc<Client>,
    query: UsageQuery,
) -> Result<Vec<UsageRow>, tokio_postgres::Error> {
    // Totals can follow each other, so the database only has to put those of a series together.
    let select = "SELECT step, series, string_agg(totals, ''::bytea) FROM (
            SELECT CASE WHEN $4 THEN at ELSE $2 END AS step, series, totals
            FROM usage_totals WHERE grain = $1 AND at >= $2 AND at < $3) parts
        GROUP BY step, series";
    let segments = query.segments();
    let has_steps = query.step.is_some();
    let mut report = Report::new(query);
    for part in segments {
        let (from, to) = (part.from.get(), part.to.get());
        let rows = on
            .query(select, &[&part.grain.number(), &from, &to, &has_steps])
            .await?;
        for row in &rows {
            let at = UnixMs::new(row.try_get(0)?);
            report.add(at, row.try_get(1)?, row.try_get(2)?);
        }
    }
    let numbers = report.series();
    let select =
        "SELECT n, wallet, key, model, channel, endpoint FROM usage_series WHERE n = ANY($1)";
    let found = if numbers.is_empty() {
        Vec::new()
    } else {
        on.query(select, &[&numbers]).await?
    };
    let series: Result<HashMap<i64, Series>, _> = found.iter().map(read_series).collect();
    Ok(report.finish(&series?))
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
