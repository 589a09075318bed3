//! The journal's writer: a bounded queue, and a thread that writes its rows in large batches.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ledger::{DAY_MS, UnixMs};
use parking_lot::{Condvar, Mutex};
use rusqlite::{Connection, params};
use tokio::sync::oneshot;

use super::names::{Names, day_of};
use super::rows::Inserts;
use super::search::find_within;
use super::usage::{self, UsageWriter};
use crate::clock;
use crate::queue::journal_queue::{JournalBounds, JournalQueue, Queued};
use crate::records::journal::{JournalCursor, JournalQuery, JournalRow, calls_of, number_of};
use crate::sqlite::connection::connect::begin_write;
use crate::stats::Counters;

/// How long rows are collected for one transaction. No caller waits for a row.
const GATHER: Duration = Duration::from_millis(100);
/// A batch of this many rows does not wait for more.
const BATCH_ROWS: usize = 2_048;
/// The number of old rows that are deleted in one transaction, so that new rows need not wait long.
const PRUNE_ROWS: u32 = 5_000;
const PRUNE_EVERY: Duration = Duration::from_secs(3_600);
/// The number of rows from before roll-ups existed that one transaction counts.
const COUNT_ROWS: u32 = 1_000;
/// The pause between two counting transactions, so that new rows and other disk work come first.
const COUNT_PAUSE: Duration = Duration::from_millis(50);
const COUNT_AGAIN: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy)]
pub(crate) struct JournalOptions {
    pub(crate) bounds: JournalBounds,
    /// 0 keeps rows forever.
    pub(crate) retention_days: u32,
}

/// The journal. Dropping it writes the queued rows and ends the thread.
#[derive(Debug)]
pub(crate) struct Journal {
    pending: Arc<PendingRows>,
    thread: Option<JoinHandle<()>>,
    counters: Arc<Counters>,
    bounds: JournalBounds,
}

#[derive(Debug, Default)]
struct PendingRows {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct State {
    queue: JournalQueue,
    flushes: Vec<oneshot::Sender<()>>,
    closed: bool,
}

impl Journal {
    pub(crate) fn start(
        connection: Connection,
        options: JournalOptions,
        counters: Arc<Counters>,
    ) -> std::io::Result<Self> {
        let pending = Arc::new(PendingRows::default());
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn({
                let pending = Arc::clone(&pending);
                let counters = Arc::clone(&counters);
                move || Writer::new(&connection, &counters, options).run(&pending)
            })?;
        Ok(Self {
            pending,
            thread: Some(thread),
            counters,
            bounds: options.bounds,
        })
    }

    pub(crate) fn append(&self, row: Box<JournalRow>) {
        let mut state = self.pending.state.lock();
        let queued = if state.closed || self.counters.below_journal_floor.get() {
            Queued::Dropped
        } else {
            state.queue.push(row, self.bounds)
        };
        let rows = state.queue.len();
        drop(state);
        self.counters.journal_queued(queued);
        if rows == 1 || rows == BATCH_ROWS {
            self.pending.wake.notify_one();
        }
    }

    /// Returns when everything that was appended before is written.
    pub(crate) async fn flush(&self) {
        let (reply, written) = oneshot::channel();
        self.pending.state.lock().flushes.push(reply);
        self.pending.wake.notify_one();
        // If the writer has ended, it has written what it could.
        drop(written.await);
    }

    pub(crate) fn queued(&self) -> usize {
        self.pending.state.lock().queue.held()
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.pending.state.lock().closed = true;
        self.pending.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl PendingRows {
    /// Waits for rows, and then a little longer for more. Returns `None` when the journal is closed and empty.
    fn next(&self, rows: &mut Vec<JournalRow>, until: Instant) -> Option<Vec<oneshot::Sender<()>>> {
        let mut state = self.state.lock();
        state.queue.written();
        let mut gathered = None;
        loop {
            let is_due_now =
                state.closed || !state.flushes.is_empty() || state.queue.len() >= BATCH_ROWS;
            if state.closed && state.queue.is_empty() && state.flushes.is_empty() {
                return None;
            }
            let now = Instant::now();
            let due = match (state.queue.is_empty(), gathered) {
                (true, _) => until,
                (false, Some(due)) => due,
                (false, None) => *gathered.insert(now + GATHER),
            };
            if is_due_now || now >= due {
                state.queue.take(rows);
                return Some(std::mem::take(&mut state.flushes));
            }
            self.wake.wait_until(&mut state, due);
        }
    }
}

struct Writer<'c> {
    connection: &'c Connection,
    counters: &'c Counters,
    options: JournalOptions,
    /// Prepared when the first row is written.
    inserts: Option<Inserts<'c>>,
    names: Names<'c>,
    usage: UsageWriter<'c>,
}

impl<'c> Writer<'c> {
    fn new(connection: &'c Connection, counters: &'c Counters, options: JournalOptions) -> Self {
        Self {
            connection,
            counters,
            options,
            inserts: None,
            names: Names::new(connection),
            usage: UsageWriter::new(connection),
        }
    }

    fn run(mut self, pending: &PendingRows) {
        let mut rows = Vec::new();
        let mut prune_at = Instant::now();
        let mut count_at = Some(Instant::now());
        loop {
            if Instant::now() >= prune_at {
                prune_at = match self.prune(clock::now()) {
                    Ok(deleted) if deleted >= PRUNE_ROWS as usize => Instant::now(),
                    Ok(_) => Instant::now() + PRUNE_EVERY,
                    Err(error) => {
                        tracing::warn!(%error, "old journal rows could not be deleted");
                        Instant::now() + PRUNE_EVERY
                    }
                };
            }
            if count_at.is_some_and(|at| Instant::now() >= at) {
                count_at = self.count_older(clock::now());
            }
            let pending_due = self.usage.pending_due();
            if pending_due.is_some_and(|due| Instant::now() >= due) {
                self.usage.add_pending(clock::now());
            }
            let others = [count_at, self.usage.pending_due()];
            let until = others.into_iter().flatten().fold(prune_at, Instant::min);
            let Some(flushes) = pending.next(&mut rows, until) else {
                self.usage.add_pending(clock::now());
                return;
            };
            let count = rows.len() as u64;
            match self.write(&rows) {
                Ok(()) => self.counters.journal_written.add(count),
                Err(error) => {
                    tracing::warn!(%error, rows = count, "journal rows could not be written");
                    self.counters.journal_dropped.add(count);
                    // Names from a rolled-back transaction are not in the table.
                    self.names.forget();
                    self.usage.forget();
                }
            }
            rows.clear();
            for flush in flushes {
                // A receiver that is gone does not need an answer.
                let _: Result<(), ()> = flush.send(());
            }
        }
    }

    fn write(&mut self, rows: &[JournalRow]) -> rusqlite::Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let connection = self.connection;
        let transaction = begin_write(connection)?;
        let inserts = match &mut self.inserts {
            Some(inserts) => inserts,
            none => none.insert(Inserts::prepare(connection)?),
        };
        inserts.all(calls_of(rows), &mut self.names)?;
        self.usage.add(rows, clock::now())?;
        transaction.commit()?;
        self.names.age();
        Ok(())
    }

    /// Counts some rows that an earlier version wrote, newest first. Returns when to count more.
    fn count_older(&mut self, now: UnixMs) -> Option<Instant> {
        match self.try_count_older(now) {
            Ok(true) => Some(Instant::now() + COUNT_PAUSE),
            Ok(false) => None,
            Err(error) => {
                tracing::warn!(%error, "older journal rows could not be counted");
                self.usage.forget();
                Some(Instant::now() + COUNT_AGAIN)
            }
        }
    }

    fn try_count_older(&mut self, now: UnixMs) -> rusqlite::Result<bool> {
        let connection = self.connection;
        let transaction = begin_write(connection)?;
        let Some(before) = usage::uncounted(connection)? else {
            return Ok(false);
        };
        let query = JournalQuery {
            before: Some(JournalCursor(before)),
            limit: COUNT_ROWS,
            without_bodies: true,
            ..JournalQuery::default()
        };
        let entries = find_within(connection, &query)?;
        let oldest = entries.last().map(|entry| entry.cursor.get());
        let rows: Vec<JournalRow> = entries.into_iter().map(|entry| entry.row).collect();
        self.usage.add(&rows, now)?;
        usage::set_uncounted(connection, oldest)?;
        transaction.commit()?;
        Ok(oldest.is_some())
    }

    /// Deletes some rows that are too old, and returns how many. After the last of them, deletes the names that no row
    /// uses any more.
    fn prune(&mut self, now: UnixMs) -> rusqlite::Result<usize> {
        usage::prune(self.connection, now)?;
        if self.options.retention_days == 0 {
            return Ok(0);
        }
        let oldest = now.minus_ms(DAY_MS.saturating_mul(i64::from(self.options.retention_days)));
        let bound = number_of(oldest);
        let delete =
            "DELETE FROM calls WHERE n IN (SELECT n FROM calls WHERE n < ?1 ORDER BY n LIMIT ?2)";
        let deleted = self
            .connection
            .prepare_cached(delete)?
            .execute(params![bound, PRUNE_ROWS])?;
        if deleted < PRUNE_ROWS as usize {
            let unused = self
                .connection
                .prepare_cached("DELETE FROM names WHERE seen < ?1")?
                .execute([day_of(bound)])?;
            if unused > 0 {
                self.names.forget();
            }
        }
        Ok(deleted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::connection::open::prepared;
    use crate::sqlite::schema::migrations::Schema;

    const NOW: UnixMs = UnixMs::new(1_800_000_000_000);
    const OPTIONS: JournalOptions = JournalOptions {
        bounds: JournalBounds {
            rows_max: 10,
            bytes_max: 1 << 20,
        },
        retention_days: 30,
    };

    fn connection() -> (tempfile::TempDir, Connection) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let connection = prepared(&path, Schema::Journal, Duration::ZERO).unwrap();
        (folder, connection)
    }

    #[test]
    fn rows_are_found_by_their_time_however_many_were_written_at_once() {
        let (_folder, connection) = connection();
        let counters = Counters::default();
        let mut writer = Writer::new(&connection, &counters, OPTIONS);
        // The cases: calls that ended out of order within a second, a pause, a clock that was set back a little, and a
        // burst.
        let mut times = vec![0, 300, 200, 7_200_000, 7_200_100, 7_100_000];
        times.extend((0..40).map(|n| 7_100_000 + n));
        let row = |ms: &i64| JournalRow {
            at: NOW.plus_ms(*ms),
            endpoint: "/v1/x".into(),
            ..JournalRow::default()
        };
        writer
            .write(&times.iter().map(row).collect::<Vec<_>>())
            .unwrap();
        writer.write(&[row(&7_100_050)]).unwrap();
        times.push(7_100_050);

        let find = |query: JournalQuery| super::super::find(&connection, &query).unwrap();
        let mut found = find(JournalQuery::default());
        found.reverse();
        let found_times: Vec<_> = found
            .iter()
            .map(|entry| entry.row.at.ms_since(NOW))
            .collect();
        assert_eq!(found_times, times);
        for entry in &found {
            assert!(entry.cursor.get() >= number_of(entry.row.at), "{entry:?}");
        }
        let between = |since: i64, until: i64| {
            let query = JournalQuery {
                since: Some(NOW.plus_ms(since)),
                until: Some(NOW.plus_ms(until)),
                ..JournalQuery::default()
            };
            find(query).len()
        };
        assert_eq!(between(200, 1_000), 2);
        assert_eq!(between(0, 1), 1);
        assert_eq!(between(7_100_000, 7_100_040), 41);
        assert_eq!(between(7_150_000, 7_300_000), 2);
    }

    #[test]
    fn rows_wait_while_another_process_writes() {
        static OTHER: Mutex<Option<Connection>> = Mutex::new(None);
        let (folder, mut connection) = connection();
        let other = Connection::open(folder.path().join("journal")).unwrap();
        other
            .execute_batch("BEGIN IMMEDIATE; INSERT INTO names (name) VALUES ('other')")
            .unwrap();
        *OTHER.lock() = Some(other);
        // The other process commits while the writer waits.
        let commit = |_| {
            let other = OTHER.lock().take();
            other.is_some_and(|other| other.execute_batch("COMMIT").is_ok())
        };
        connection.busy_handler(Some(commit)).unwrap();
        let counters = Counters::default();
        let mut writer = Writer::new(&connection, &counters, OPTIONS);
        let row = JournalRow {
            at: NOW,
            model: "a/m".into(),
            endpoint: "/v1/x".into(),
            ..JournalRow::default()
        };
        // The names of the row are not cached, so they are read before anything is written.
        writer.write(&[row]).unwrap();
        let found = super::super::find(&connection, &JournalQuery::default()).unwrap();
        assert_eq!(&*found[0].row.model, "a/m");
    }

    #[test]
    fn names_go_with_their_rows() {
        let (_folder, connection) = connection();
        let counters = Counters::default();
        let mut writer = Writer::new(&connection, &counters, OPTIONS);
        let row = |model: &str, age_days: i64| JournalRow {
            at: NOW.minus_ms(age_days * DAY_MS),
            model: model.into(),
            endpoint: "/v1/x".into(),
            ..JournalRow::default()
        };
        writer.write(&[row("a/old", 40)]).unwrap();
        // The name is used again on a later day, without being read from the table in between.
        writer
            .write(&[row("a/kept", 40), row("a/kept", 2)])
            .unwrap();
        writer.prune(NOW).unwrap();
        let names = |connection: &Connection| -> Vec<String> {
            let mut select = connection
                .prepare("SELECT name FROM names ORDER BY name")
                .unwrap();
            let names = select.query_map([], |row| row.get(0)).unwrap();
            names.map(Result::unwrap).collect()
        };
        assert_eq!(names(&connection), ["/v1/x", "a/kept"]);
        // A deleted name is inserted again.
        writer.write(&[row("a/old", 1)]).unwrap();
        assert_eq!(names(&connection), ["/v1/x", "a/kept", "a/old"]);
        let found = super::super::find(&connection, &JournalQuery::default()).unwrap();
        assert_eq!(&*found[0].row.model, "a/old");
    }
}
