//! Manages the journal's tables, one per day: creates them ahead, and drops those that are too old.

use std::collections::BTreeSet;

use ledger::{DAY_MS, UnixMs};
use tokio_postgres::Client;

use crate::records::journal::{TIME_SHIFT, number_of};

/// The number of days, from today on, whose tables are created in advance.
const AHEAD: i64 = 2;
/// The advisory lock for creating and dropping tables, so that one node does it at a time.
const LOCK: &str =
    "SELECT pg_try_advisory_lock(hashtextextended(current_schema() || ' tollgate journal', 0))";
const UNLOCK: &str =
    "SELECT pg_advisory_unlock(hashtextextended(current_schema() || ' tollgate journal', 0))";

/// Creates and drops tables, unless another node is doing so.
pub(super) async fn keep(
    on: &Client,
    now: UnixMs,
    retention_days: u32,
) -> Result<(), tokio_postgres::Error> {
    if !on.query_one(LOCK, &[]).await?.try_get::<_, bool>(0)? {
        return Ok(());
    }
    let kept = keep_locked(on, now, retention_days).await;
    on.batch_execute(UNLOCK).await?;
    kept
}

async fn keep_locked(
    on: &Client,
    now: UnixMs,
    retention_days: u32,
) -> Result<(), tokio_postgres::Error> {
    let today = now.get().max(0) / DAY_MS;
    for day in today..today + AHEAD {
        make(on, day).await?;
    }
    if retention_days == 0 {
        return Ok(());
    }
    let oldest = now.minus_ms(DAY_MS.saturating_mul(i64::from(retention_days)));
    drop_before(on, oldest.get().max(0) / DAY_MS).await?;
    let delete = "DELETE FROM calls_of_other_days WHERE n < $1";
    on.execute(delete, &[&number_of(oldest)]).await?;
    Ok(())
}

/// Creates the tables for the days of the rows with these numbers.
pub(crate) async fn make_days(
    on: &Client,
    numbers: impl IntoIterator<Item = i64>,
) -> Result<(), tokio_postgres::Error> {
    let days = numbers
        .into_iter()
        .map(|number| (number >> TIME_SHIFT).div_euclid(DAY_MS));
    for day in days.collect::<BTreeSet<i64>>() {
        make(on, day).await?;
    }
    Ok(())
}

/// Creates a day's table separately and then attaches it to the journal, so that no writer has to wait.
async fn make(on: &Client, day: i64) -> Result<(), tokio_postgres::Error> {
    let name = format!("calls_of_day_{day}");
    let there = "SELECT to_regclass($1) IS NOT NULL";
    if on.query_one(there, &[&name]).await?.try_get(0)? {
        return Ok(());
    }
    let (from, to) = (first_of(day), first_of(day + 1));
    let made = on
        .batch_execute(&format!(
            "BEGIN;
             CREATE TABLE {name} (LIKE calls INCLUDING DEFAULTS);
             ALTER TABLE {name} ADD CHECK (n >= {from} AND n < {to});
             ALTER TABLE calls ATTACH PARTITION {name} FOR VALUES FROM ({from}) TO ({to});
             COMMIT"
        ))
        .await;
    if let Err(error) = made {
        // The day's table could not be attached, for example because the default table already has rows of that day.
        // The default table then continues to receive the day's rows.
        on.batch_execute("ROLLBACK").await?;
        tracing::warn!(%error, day, "the journal has no table for a day");
    }
    Ok(())
}

async fn drop_before(on: &Client, oldest: i64) -> Result<(), tokio_postgres::Error> {
    let days = "SELECT c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
                WHERE i.inhparent = 'calls'::regclass AND c.relname LIKE 'calls\\_of\\_day\\_%'";
    for row in on.query(days, &[]).await? {
        let name: String = row.try_get(0)?;
        let day: Option<i64> = name
            .strip_prefix("calls_of_day_")
            .and_then(|day| day.parse().ok());
        if day.is_some_and(|day| day < oldest) {
            // The name is our own and consists only of letters, digits and underscores.
            on.batch_execute(&format!("DROP TABLE IF EXISTS {name}"))
                .await?;
        }
    }
    Ok(())
}

fn first_of(day: i64) -> i64 {
    number_of(UnixMs::new(day.saturating_mul(DAY_MS)))
}
