//! The journal's writer: a task that copies rows in large batches, and retries until they are written.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ledger::UnixMs;
use rand::RngExt as _;
use tokio_postgres::Client;

use super::partitions;
use super::queue::Journal;
use super::rows::{copy, plain};
use super::search::search;
use super::usage::{self, UsageWriter};
use crate::clock;
use crate::postgres::connection::connect::{Role, Target};
use crate::postgres::connection::errors::{FailureKind, PgError};
use crate::postgres::node::lease::Node;
use crate::records::journal::{
    JournalCursor, JournalQuery, JournalRow, SET_BACK_MS_MAX, TIME_SHIFT, calls_of, number_of,
};

/// The interval at which the tables of the days are checked.
const DAYS_EVERY: Duration = Duration::from_secs(3_600);
const DAYS_AGAIN: Duration = Duration::from_secs(60);
/// The time limit of one attempt.
const COPY_MAX: Duration = Duration::from_secs(15);
/// The number of rows of earlier versions that one transaction adds to the roll-ups.
const COUNT_ROWS: u32 = 1_000;
/// The pause between two counting transactions, so that new rows, other nodes and other database work come first.
const COUNT_PAUSE: Duration = Duration::from_millis(50);
/// The base of the backoff. After `n` failures in a row, the writer pauses for this time multiplied by 2^n, at most for
/// `PAUSE_MAX`. It does not pause after the first failure.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// The lowest bits of a row's number identify the node that wrote it.
const NODE_BITS: u32 = TIME_SHIFT / 2;

/// Writes the journal until it is closed and empty.
pub(crate) async fn write(journal: Arc<Journal>, target: Arc<Target>, node: Arc<Node>) {
    let mut writer = Writer {
        target,
        node,
        client: None,
        last: 0,
        lock: rand::rng().random(),
        usage: UsageWriter::default(),
    };
    let mut rows = Vec::new();
    let mut days_at = Instant::now();
    let mut count_at = Some(Instant::now());
    loop {
        if Instant::now() >= days_at {
            days_at = Instant::now() + writer.update_partitions(journal.retention_days).await;
        }
        if count_at.is_some_and(|at| Instant::now() >= at) {
            count_at = writer.count_older().await;
        }
        let until = count_at.map_or(days_at, |at| at.min(days_at));
        let Some(flushes) = journal.next(&mut rows, until).await else {
            return;
        };
        writer.write_all(&journal, &rows).await;
        rows.clear();
        journal.taken_rows_finished();
        for flush in flushes {
            // A receiver that is gone does not need an answer.
            let _: Result<(), ()> = flush.send(());
        }
    }
}

struct Writer {
    target: Arc<Target>,
    node: Arc<Node>,
    client: Option<Client>,
    /// The number of the last row.
    last: i64,
    /// An advisory lock that each of our transactions takes. A transaction that has the lock knows that all earlier
    /// ones have ended, even those whose connection was lost.
    lock: i64,
    usage: UsageWriter,
}

/// The number of the first row of an attempt whose outcome is unknown. Either all rows of the attempt are stored or
/// none.
#[derive(Debug, Clone, Copy)]
struct UnconfirmedRows {
    first: i64,
}

impl Writer {
    async fn client(&mut self) -> Result<&Client, PgError> {
        if self.client.as_ref().is_none_or(Client::is_closed) {
            self.client = Some(self.target.connect(Role::Journal).await?);
        }
        self.client.as_ref().ok_or(PgError::NoAnswer)
    }

    /// Creates and drops the tables of days. Returns the time until the next check.
    async fn update_partitions(&mut self, retention_days: u32) -> Duration {
        let seen = async {
            let client = self.client().await?;
            partitions::keep(client, clock::now(), retention_days).await?;
            usage::prune(client, clock::now()).await?;
            Ok::<(), PgError>(())
        };
        match tokio::time::timeout(COPY_MAX, seen).await {
            Ok(Ok(())) => DAYS_EVERY,
            Ok(Err(failed)) => {
                tracing::warn!(error = %failed, "the daily tables of the journal could not be created or dropped");
                self.client = None;
                DAYS_AGAIN
            }
            Err(_) => {
                self.client = None;
                DAYS_AGAIN
            }
        }
    }

    /// Counts some rows that an earlier version wrote, newest first. Returns when to count more.
    async fn count_older(&mut self) -> Option<Instant> {
        let counted = tokio::time::timeout(COPY_MAX, self.try_count_older()).await;
        match counted.unwrap_or(Err(PgError::NoAnswer)) {
            Ok(true) => Some(Instant::now() + COUNT_PAUSE),
            Ok(false) => None,
            Err(failed) => {
                tracing::warn!(error = %failed, "older journal rows could not be counted");
                self.client = None;
                self.usage.forget();
                Some(Instant::now() + DAYS_AGAIN)
            }
        }
    }

    async fn try_count_older(&mut self) -> Result<bool, PgError> {
        self.client().await?;
        let Some(client) = &self.client else {
            return Err(PgError::NoAnswer);
        };
        // The lock on this row keeps other nodes from counting the same rows.
        client.batch_execute("BEGIN").await?;
        let before = "SELECT before FROM usage_uncounted FOR UPDATE";
        let Some(before) = client.query_opt(before, &[]).await? else {
            client.batch_execute("COMMIT").await?;
            return Ok(false);
        };
        let query = JournalQuery {
            before: Some(JournalCursor(before.try_get(0)?)),
            limit: COUNT_ROWS,
            without_bodies: true,
            ..JournalQuery::default()
        };
        let entries = search(client, &query, None).await?.entries;
        let oldest = entries.last().map(|entry| entry.cursor.get());
        let rows: Vec<JournalRow> = entries.into_iter().map(|entry| entry.row).collect();
        self.usage.add(client, &rows, clock::now()).await?;
        match oldest {
            Some(oldest) => {
                let update = "UPDATE usage_uncounted SET before = $1";
                client.execute(update, &[&oldest]).await?;
            }
            None => client.batch_execute("DELETE FROM usage_uncounted").await?,
        }
        client.batch_execute("COMMIT").await?;
        Ok(oldest.is_some())
    }

    /// Writes rows, and retries as long as the database is unavailable. A row that the database rejects is dropped and
    /// counted as dropped. If the store is closed during an outage, all remaining rows are dropped and counted.
    async fn write_all(&mut self, journal: &Journal, rows: &[JournalRow]) {
        let mut parts = vec![rows];
        while let Some(part) = parts.pop() {
            let count = part.len() as u64;
            match self.write_part(journal, part).await {
                Ok(()) => journal.counters.journal_written.add(count),
                Err(_) if part.len() > 1 && !journal.is_closed() => {
                    let (first, second) = part.split_at(part.len() / 2);
                    parts.extend([second, first]);
                }
                Err(failed) => {
                    tracing::error!(error = %failed, rows = count, "journal rows are dropped");
                    journal.counters.journal_dropped.add(count);
                }
            }
        }
    }

    /// Writes rows together. Fails only if the database rejects one of them, or if an attempt fails after the
    /// store was closed.
    async fn write_part(&mut self, journal: &Journal, rows: &[JournalRow]) -> Result<(), PgError> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut unconfirmed = None;
        let mut failures: u32 = 0;
        loop {
            let numbers = self.numbers(calls_of(rows), (failures > 0).then(clock::now));
            let tried = self.try_write(rows, &numbers, &mut unconfirmed);
            let written = match tokio::time::timeout(COPY_MAX, tried).await {
                Ok(written) => written,
                Err(_) => Err(PgError::NoAnswer),
            };
            let Err(failed) = written else {
                if failures > 1 {
                    tracing::info!(rows = rows.len(), "the journal is written again");
                }
                return Ok(());
            };
            self.client = None;
            self.usage.forget();
            failures = failures.saturating_add(1);
            if is_caused_by_rows(&failed) || journal.is_closed() {
                return Err(failed);
            }
            match failures {
                // The connection may have been lost earlier without being noticed.
                1 => continue,
                2 => {
                    tracing::warn!(error = %failed, rows = rows.len(), "journal rows wait for the database");
                }
                _ => {}
            }
            let pause = PAUSE_MIN.saturating_mul(2_u32.saturating_pow(failures.min(10)));
            journal.pause(pause.min(PAUSE_MAX)).await;
        }
    }

    /// Makes one attempt in one transaction. Skips rows that an earlier attempt has written. If the answer to a commit
    /// is lost, late charges are counted twice if their attempt contained no call, because no row then proves the
    /// commit.
    async fn try_write(
        &mut self,
        rows: &[JournalRow],
        numbers: &[i64],
        unconfirmed: &mut Option<UnconfirmedRows>,
    ) -> Result<(), PgError> {
        let lock = self.lock;
        self.client().await?;
        let Some(client) = &self.client else {
            return Err(PgError::NoAnswer);
        };
        client
            .batch_execute(&format!("BEGIN; SELECT pg_advisory_xact_lock({lock})"))
            .await?;
        let calls = calls_of(rows);
        if let (Some(before), Some(row)) = (*unconfirmed, calls.first()) {
            let there = "SELECT EXISTS (SELECT 1 FROM calls WHERE n = $1 AND request_id = $2)";
            let request_id = plain(&row.request_id);
            let found = client
                .query_one(there, &[&before.first, &request_id])
                .await?;
            if found.try_get(0)? {
                client.batch_execute("COMMIT").await?;
                return Ok(());
            }
        }
        *unconfirmed = None;
        copy(client, calls, numbers).await?;
        self.usage.add(client, rows, clock::now()).await?;
        *unconfirmed = numbers
            .first()
            .map(|first| UnconfirmedRows { first: *first });
        client.batch_execute("COMMIT").await?;
        Ok(())
    }

    /// Numbers the rows by the time of their calls. The number of a late row contains the current time, so that readers
    /// that follow the journal do not miss the row. This time is limited, so that a search by time still finds the row.
    fn numbers(&mut self, rows: &[JournalRow], late: Option<UnixMs>) -> Vec<i64> {
        let time = |row: &JournalRow| match late {
            Some(now) => now.min(row.at.plus_ms(SET_BACK_MS_MAX - 1)).max(row.at),
            None => row.at,
        };
        rows.iter().map(|row| self.number(time(row))).collect()
    }

    /// The next number. Numbers grow with time and are unique among nodes.
    fn number(&mut self, at: UnixMs) -> i64 {
        let node = self.node.epoch().get() & ((1 << NODE_BITS) - 1);
        let next = (self.last >> NODE_BITS).saturating_add(1) << NODE_BITS;
        self.last = number_of(at).max(next) | node;
        self.last
    }
}

/// Whether the same rows would fail on any server, because a value does not fit or a constraint is violated.
fn is_caused_by_rows(failed: &PgError) -> bool {
    match failed {
        PgError::Sql(error) => match error.code() {
            Some(code) => matches!(code.code().get(..2), Some("21" | "22" | "23" | "54")),
            None => failed.kind() == FailureKind::Permanent,
        },
        _ => false,
    }
}
