//! The journal's writer: a bounded list and a thread that writes it in large batches.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ledger::UnixMs;
use parking_lot::{Condvar, Mutex};
use rusqlite::{Connection, OptionalExtension as _, params};
use tokio::sync::oneshot;

use crate::clock;
use crate::ids::{KeyId, WalletId};
use crate::journal::{BODY_BYTES_MAX, JournalRow};
use crate::sqlite::cache::Generations;
use crate::stats::Counters;

/// Nobody waits for a row, so many share a transaction.
const GATHER: Duration = Duration::from_millis(100);
/// A list of this length is written at once.
const BATCH_ROWS: usize = 2_048;
/// Old rows deleted in one transaction, so that new ones need not wait long.
const PRUNE_ROWS: u32 = 5_000;
const PRUNE_EVERY: Duration = Duration::from_secs(3_600);
const DAY_MS: i64 = 86_400_000;
/// A row's number is its time, shifted by these bits.
pub(super) const TIME_SHIFT: u32 = 20;
const CACHED_NAMES_MAX: usize = 16_384;

#[derive(Debug, Clone, Copy)]
pub(in crate::sqlite) struct JournalOptions {
    pub(in crate::sqlite) queue_max: usize,
    /// 0 keeps rows for ever.
    pub(in crate::sqlite) retention_days: u32,
}

/// The way to the journal. Dropping it writes what is queued and ends the thread.
#[derive(Debug)]
pub(in crate::sqlite) struct Journal {
    line: Arc<Line>,
    thread: Option<JoinHandle<()>>,
    counters: Arc<Counters>,
    queue_max: usize,
}

#[derive(Debug, Default)]
struct Line {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct State {
    rows: Vec<JournalRow>,
    flushes: Vec<oneshot::Sender<()>>,
    closed: bool,
}

impl Journal {
    pub(in crate::sqlite) fn start(
        connection: Connection,
        options: JournalOptions,
        counters: Arc<Counters>,
    ) -> std::io::Result<Self> {
        let line = Arc::new(Line::default());
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn({
                let line = Arc::clone(&line);
                let counters = Arc::clone(&counters);
                move || Writer::new(&connection, &counters, options).run(&line)
            })?;
        Ok(Self {
            line,
            thread: Some(thread),
            counters,
            queue_max: options.queue_max,
        })
    }

    pub(in crate::sqlite) fn append(&self, row: JournalRow) {
        let mut state = self.line.state.lock();
        if state.rows.len() >= self.queue_max
            || state.closed
            || self.counters.below_journal_floor.get()
        {
            drop(state);
            self.counters.journal_dropped.add(1);
            return;
        }
        state.rows.push(row);
        let rows = state.rows.len();
        drop(state);
        if rows == 1 || rows == BATCH_ROWS {
            self.line.wake.notify_one();
        }
    }

    /// Returns when what was appended so far is written.
    pub(in crate::sqlite) async fn flush(&self) {
        let (reply, written) = oneshot::channel();
        self.line.state.lock().flushes.push(reply);
        self.line.wake.notify_one();
        // A journal that has ended has written what it could.
        drop(written.await);
    }

    pub(in crate::sqlite) fn queued(&self) -> usize {
        self.line.state.lock().rows.len()
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.line.state.lock().closed = true;
        self.line.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl Line {
    /// Waits for rows and some company for them; nothing when the journal has ended.
    fn next(&self, rows: &mut Vec<JournalRow>, until: Instant) -> Option<Vec<oneshot::Sender<()>>> {
        let mut state = self.state.lock();
        let mut gathered = None;
        loop {
            let hurried =
                state.closed || !state.flushes.is_empty() || state.rows.len() >= BATCH_ROWS;
            if state.closed && state.rows.is_empty() && state.flushes.is_empty() {
                return None;
            }
            let now = Instant::now();
            let due = match (state.rows.is_empty(), gathered) {
                (true, _) => until,
                (false, Some(due)) => due,
                (false, None) => *gathered.insert(now + GATHER),
            };
            if hurried || now >= due {
                std::mem::swap(&mut state.rows, rows);
                return Some(std::mem::take(&mut state.flushes));
            }
            self.wake.wait_until(&mut state, due);
        }
    }
}

type Words = std::collections::HashMap<Box<str>, i64>;

struct Writer<'c> {
    connection: &'c Connection,
    counters: &'c Counters,
    options: JournalOptions,
    /// The number of the last row.
    last: i64,
    wallets: Generations<WalletId, i64>,
    keys: Generations<KeyId, i64>,
    words: Words,
}

impl<'c> Writer<'c> {
    fn new(connection: &'c Connection, counters: &'c Counters, options: JournalOptions) -> Self {
        let last = connection.query_row("SELECT coalesce(max(n), 0) FROM calls", [], |row| {
            row.get(0)
        });
        Self {
            connection,
            counters,
            options,
            last: last.unwrap_or(0),
            wallets: Generations::new(CACHED_NAMES_MAX),
            keys: Generations::new(CACHED_NAMES_MAX),
            words: Words::default(),
        }
    }

    fn run(mut self, line: &Line) {
        let mut rows = Vec::new();
        let mut prune_at = Instant::now();
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
            let Some(flushes) = line.next(&mut rows, prune_at) else {
                return;
            };
            let count = rows.len() as u64;
            match self.write(&rows) {
                Ok(()) => self.counters.journal_written.add(count),
                Err(error) => {
                    tracing::warn!(%error, rows = count, "journal rows could not be written");
                    self.counters.journal_dropped.add(count);
                    // Names of a transaction that was undone are not in the table.
                    self.wallets.clear();
                    self.keys.clear();
                    self.words.clear();
                }
            }
            rows.clear();
            for flush in flushes {
                // Who no longer waits need not know.
                let _: Result<(), ()> = flush.send(());
            }
        }
    }

    fn write(&mut self, rows: &[JournalRow]) -> rusqlite::Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let connection = self.connection;
        let transaction = connection.unchecked_transaction()?;
        let mut insert = connection.prepare_cached(
            "INSERT INTO calls (n, at, wallet, key, status, request_id, model, endpoint, channel, upstream_model, code,
             stream, outcome, meter, charge, admitted_us, upstream_us, first_byte_us, total_us, dropped_params,
             route_notes, request_body, response_body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21,
             ?22, ?23)",
        )?;
        for row in rows {
            let (wallet, key) = self.party(row)?;
            let model = self.word(&row.model)?;
            let endpoint = self.word(&row.endpoint)?;
            let channel = row
                .channel
                .as_deref()
                .map(|text| self.word(text))
                .transpose()?;
            let upstream_model = row.upstream_model.as_deref();
            let upstream_model = upstream_model.map(|text| self.word(text)).transpose()?;
            let times = &row.timings;
            insert.execute(params![
                self.number(row.at),
                row.at.get(),
                wallet,
                key,
                row.status,
                row.request_id,
                model,
                endpoint,
                channel,
                upstream_model,
                row.code,
                row.stream,
                row.outcome,
                row.meter
                    .as_ref()
                    .and_then(|meter| serde_json::to_string(meter).ok()),
                row.charge.get(),
                times.admitted_us.map(micros),
                times.upstream_us.map(micros),
                times.first_byte_us.map(micros),
                micros(times.total_us),
                row.dropped_params,
                row.route_notes,
                row.request_body.as_deref().map(cut),
                row.response_body.as_deref().map(cut),
            ])?;
        }
        drop(insert);
        transaction.commit()?;
        self.wallets.age();
        self.keys.age();
        Ok(())
    }

    fn number(&mut self, at: UnixMs) -> i64 {
        let by_time = at.get().max(0).checked_mul(1 << TIME_SHIFT).unwrap_or(0);
        self.last = by_time.max(self.last.saturating_add(1));
        self.last
    }

    fn party(&mut self, row: &JournalRow) -> rusqlite::Result<(Option<i64>, Option<i64>)> {
        let Some(wallet_id) = row.wallet else {
            return Ok((None, None));
        };
        let wallet = if let Some(n) = self.wallets.get_mut(wallet_id) {
            *n
        } else {
            let n = self.name(&wallet_id.to_string(), None)?;
            self.wallets.insert(wallet_id, n);
            n
        };
        let Some(key_id) = row.key else {
            return Ok((Some(wallet), None));
        };
        if let Some(n) = self.keys.get_mut(key_id) {
            return Ok((Some(wallet), Some(*n)));
        }
        let n = self.name(&key_id.to_string(), Some(wallet))?;
        self.keys.insert(key_id, n);
        Ok((Some(wallet), Some(n)))
    }

    fn word(&mut self, word: &str) -> rusqlite::Result<i64> {
        if let Some(n) = self.words.get(word) {
            return Ok(*n);
        }
        let n = self.name(word, None)?;
        // What callers send may stand here too, so the table of words is bounded like the others.
        if self.words.len() >= CACHED_NAMES_MAX {
            self.words.clear();
        }
        self.words.insert(word.into(), n);
        Ok(n)
    }

    fn name(&self, name: &str, wallet: Option<i64>) -> rusqlite::Result<i64> {
        let select = "SELECT n FROM names WHERE name = ?1";
        let known = self
            .connection
            .prepare_cached(select)?
            .query_row([name], |row| row.get(0))
            .optional()?;
        if let Some(n) = known {
            return Ok(n);
        }
        let insert = "INSERT INTO names (name, wallet) VALUES (?1, ?2)";
        self.connection
            .prepare_cached(insert)?
            .execute(params![name, wallet])?;
        Ok(self.connection.last_insert_rowid())
    }

    /// Deletes some rows that are too old; answers how many.
    fn prune(&self, now: UnixMs) -> rusqlite::Result<usize> {
        if self.options.retention_days == 0 {
            return Ok(0);
        }
        let oldest = now.minus_ms(DAY_MS.saturating_mul(i64::from(self.options.retention_days)));
        let bound = oldest.get().max(0).saturating_mul(1 << TIME_SHIFT);
        let delete =
            "DELETE FROM calls WHERE n IN (SELECT n FROM calls WHERE n < ?1 ORDER BY n LIMIT ?2)";
        self.connection
            .prepare_cached(delete)?
            .execute(params![bound, PRUNE_ROWS])
    }
}

fn micros(us: u64) -> i64 {
    i64::try_from(us).unwrap_or(i64::MAX)
}

fn cut(body: &str) -> &str {
    let mut end = body.len().min(BODY_BYTES_MAX);
    while !body.is_char_boundary(end) {
        end -= 1;
    }
    body.get(..end).unwrap_or(body)
}
