//! The journal's writer: a bounded list and a task that copies it in large batches.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ledger::UnixMs;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio_postgres::Client;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};

use super::days;
use crate::clock;
use crate::journal::{JournalRow, TIME_SHIFT, cut, number_of};
use crate::journal_queue::{JournalBounds, JournalQueue, Queued};
use crate::meter::MeterText;
use crate::postgres::connect::{Role, Target};
use crate::postgres::node::Node;
use crate::postgres::trouble::Failed;
use crate::stats::Counters;

/// Nobody waits for a row, so many share a transaction.
const GATHER: Duration = Duration::from_millis(100);
/// A list of this length is written at once.
const BATCH_ROWS: usize = 2_048;
/// How often the tables of the days are seen to.
const DAYS_EVERY: Duration = Duration::from_secs(3_600);
const DAYS_AGAIN: Duration = Duration::from_secs(60);
/// How long rows wait for a database that is away.
const COPY_MAX: Duration = Duration::from_secs(15);
/// The lowest bits of a row's number name the node that wrote it.
const NODE_BITS: u32 = TIME_SHIFT / 2;

const COPY: &str = "COPY calls (n, at, wallet, key, status, request_id, model, endpoint, channel, upstream_model, code,
    stream, outcome, hold, meter, charge, admitted_us, queued_us, upstream_us, first_byte_us, total_us, dropped_params,
    route_notes, request_body, response_body) FROM STDIN BINARY";

/// The way to the journal.
#[derive(Debug)]
pub(in crate::postgres) struct Journal {
    state: Mutex<State>,
    wake: Notify,
    counters: Arc<Counters>,
    bounds: JournalBounds,
    retention_days: u32,
}

#[derive(Debug, Default)]
struct State {
    queue: JournalQueue,
    flushes: Vec<oneshot::Sender<()>>,
    closed: bool,
}

impl Journal {
    pub(in crate::postgres) fn new(
        counters: &Arc<Counters>,
        bounds: JournalBounds,
        retention_days: u32,
    ) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            wake: Notify::new(),
            counters: Arc::clone(counters),
            bounds,
            retention_days,
        })
    }

    pub(in crate::postgres) fn append(&self, row: JournalRow) {
        let mut state = self.state.lock();
        let queued = if state.closed {
            Queued::Dropped
        } else {
            state.queue.push(row, self.bounds)
        };
        let rows = state.queue.len();
        drop(state);
        self.counters.journal_queued(queued);
        if rows == 1 || rows == BATCH_ROWS {
            self.wake.notify_one();
        }
    }

    /// Returns when what was appended so far is written.
    pub(in crate::postgres) async fn flush(&self) {
        let (reply, written) = oneshot::channel();
        self.state.lock().flushes.push(reply);
        self.wake.notify_one();
        // A journal that has ended has written what it could.
        drop(written.await);
    }

    pub(in crate::postgres) fn queued(&self) -> usize {
        self.state.lock().queue.held()
    }

    /// Takes nothing more; the writer ends when the list is empty.
    pub(in crate::postgres) fn close(&self) {
        self.state.lock().closed = true;
        self.wake.notify_one();
    }

    /// Waits for rows and some company for them; nothing when the journal has ended.
    async fn next(
        &self,
        rows: &mut Vec<JournalRow>,
        until: Instant,
    ) -> Option<Vec<oneshot::Sender<()>>> {
        let mut gathered = None;
        self.state.lock().queue.written();
        loop {
            let due = {
                let mut state = self.state.lock();
                if state.closed && state.queue.is_empty() && state.flushes.is_empty() {
                    return None;
                }
                let hurried =
                    state.closed || !state.flushes.is_empty() || state.queue.len() >= BATCH_ROWS;
                let now = Instant::now();
                let due = match (state.queue.is_empty(), gathered) {
                    (true, _) => until,
                    (false, Some(due)) => due,
                    (false, None) => *gathered.insert(now + GATHER),
                };
                if hurried || now >= due {
                    state.queue.take(rows);
                    return Some(std::mem::take(&mut state.flushes));
                }
                due
            };
            drop(tokio::time::timeout_at(due.into(), self.wake.notified()).await);
        }
    }
}

/// Writes the journal until it is closed and empty.
pub(in crate::postgres) async fn write(
    journal: Arc<Journal>,
    target: Arc<Target>,
    node: Arc<Node>,
) {
    let mut writer = Writer {
        target,
        node,
        client: None,
        last: 0,
    };
    let mut rows = Vec::new();
    let mut days_at = Instant::now();
    loop {
        if Instant::now() >= days_at {
            days_at = Instant::now() + writer.see_to_days(journal.retention_days).await;
        }
        let Some(flushes) = journal.next(&mut rows, days_at).await else {
            return;
        };
        let count = rows.len() as u64;
        if count > 0 {
            match writer.write(&rows).await {
                Ok(()) => journal.counters.journal_written.add(count),
                Err(failed) => {
                    tracing::warn!(error = %failed, rows = count, "journal rows could not be written");
                    journal.counters.journal_dropped.add(count);
                }
            }
        }
        rows.clear();
        for flush in flushes {
            // Who no longer waits need not know.
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
}

impl Writer {
    async fn client(&mut self) -> Result<&Client, Failed> {
        if self.client.as_ref().is_none_or(Client::is_closed) {
            self.client = Some(self.target.connect(Role::Journal).await?);
        }
        self.client.as_ref().ok_or(Failed::Silent)
    }

    /// Answers when to look again.
    async fn see_to_days(&mut self, retention_days: u32) -> Duration {
        let seen = async {
            let client = self.client().await?;
            days::keep(client, clock::now(), retention_days).await?;
            Ok::<(), Failed>(())
        };
        match tokio::time::timeout(COPY_MAX, seen).await {
            Ok(Ok(())) => DAYS_EVERY,
            Ok(Err(failed)) => {
                tracing::warn!(error = %failed, "the journal's days could not be seen to");
                self.client = None;
                DAYS_AGAIN
            }
            Err(_) => {
                self.client = None;
                DAYS_AGAIN
            }
        }
    }

    /// Writes rows, once more on a new connection when the old one turns out to be gone.
    async fn write(&mut self, rows: &[JournalRow]) -> Result<(), Failed> {
        let numbers: Vec<i64> = rows.iter().map(|row| self.number(row.at)).collect();
        let mut tried = 0;
        loop {
            tried += 1;
            let copied = async {
                let client = self.client().await?;
                copy(client, rows, &numbers).await?;
                Ok::<(), Failed>(())
            };
            let copied = match tokio::time::timeout(COPY_MAX, copied).await {
                Ok(copied) => copied,
                Err(_) => Err(Failed::Silent),
            };
            match copied {
                Ok(()) => return Ok(()),
                Err(failed) => {
                    self.client = None;
                    if tried >= 2 {
                        return Err(failed);
                    }
                }
            }
        }
    }

    /// Numbers grow with time, and no two nodes give the same.
    fn number(&mut self, at: UnixMs) -> i64 {
        let node = self.node.epoch().get() & ((1 << NODE_BITS) - 1);
        let next = (self.last >> NODE_BITS).saturating_add(1) << NODE_BITS;
        self.last = number_of(at).max(next) | node;
        self.last
    }
}

async fn copy(
    on: &Client,
    rows: &[JournalRow],
    numbers: &[i64],
) -> Result<(), tokio_postgres::Error> {
    let sink = on.copy_in(COPY).await?;
    let types = [
        Type::INT8,
        Type::INT8,
        Type::TEXT,
        Type::TEXT,
        Type::INT4,
        Type::TEXT,
        Type::TEXT,
        Type::TEXT,
        Type::TEXT,
        Type::TEXT,
        Type::TEXT,
        Type::BOOL,
        Type::TEXT,
        Type::INT8,
        Type::TEXT,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::TEXT,
        Type::TEXT,
        Type::TEXT,
        Type::TEXT,
    ];
    let mut to = std::pin::pin!(BinaryCopyInWriter::new(sink, &types));
    for (row, number) in rows.iter().zip(numbers) {
        let times = &row.timings;
        let columns: [&(dyn ToSql + Sync); 25] = [
            number,
            &row.at.get(),
            &row.wallet.map(|wallet| wallet.to_string()),
            &row.key.map(|key| key.to_string()),
            &i32::from(row.status),
            &plain(&row.request_id),
            &plain(&row.model),
            &plain(&row.endpoint),
            &row.channel.as_deref().map(plain),
            &row.upstream_model.as_deref().map(plain),
            &row.code.as_deref().map(plain),
            &row.stream,
            &row.outcome.as_deref().map(plain),
            &row.hold.map(crate::ids::HoldId::get),
            &row.meter.as_ref().map(MeterText::as_str),
            &row.charge.get(),
            &times.admitted_us.map(micros),
            &times.queued_us.map(micros),
            &times.upstream_us.map(micros),
            &times.first_byte_us.map(micros),
            &micros(times.total_us),
            &row.dropped_params.as_deref().map(plain),
            &row.route_notes.as_deref().map(plain),
            &row.request_body.as_deref().map(|body| plain(cut(body))),
            &row.response_body.as_deref().map(|body| plain(cut(body))),
        ];
        to.as_mut().write(&columns).await?;
    }
    to.finish().await?;
    Ok(())
}

/// A text of this database holds no zero character.
fn plain(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        Cow::Owned(text.replace('\0', "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

fn micros(us: u64) -> i64 {
    i64::try_from(us).unwrap_or(i64::MAX)
}
