//! The queue of the journal. It is bounded, and never delays a call.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use crate::queue::journal_queue::{JournalBounds, JournalQueue, Queued};
use crate::records::journal::JournalRow;
use crate::stats::Counters;

/// How long rows are collected for one transaction. No caller waits for a row.
const GATHER: Duration = Duration::from_millis(100);
/// A batch of this many rows does not wait for more.
const BATCH_ROWS: usize = 2_048;
/// Rows of calls without a hold may fill at most the queue's size divided by this number.
const NO_HOLD_QUEUE_DIVISOR: usize = 4;

#[derive(Debug)]
pub(crate) struct Journal {
    state: Mutex<State>,
    wake: Notify,
    pub(super) counters: Arc<Counters>,
    bounds: JournalBounds,
    pub(super) retention_days: u32,
}

#[derive(Debug, Default)]
struct State {
    queue: JournalQueue,
    flushes: Vec<oneshot::Sender<()>>,
    closed: bool,
}

impl Journal {
    pub(crate) fn new(
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

    pub(crate) fn append(&self, row: Box<JournalRow>) {
        // A call with a hold may have been charged. During an outage of the database no call gets a hold, and the rows
        // of refused calls must not displace those of charged calls.
        let mut bounds = self.bounds;
        if row.hold.is_none() {
            bounds.rows_max /= NO_HOLD_QUEUE_DIVISOR;
        }
        let mut state = self.state.lock();
        let queued = if state.closed {
            Queued::Dropped
        } else {
            state.queue.push(row, bounds)
        };
        let rows = state.queue.len();
        drop(state);
        self.counters.journal_queued(queued);
        if rows == 1 || rows == BATCH_ROWS {
            self.wake.notify_one();
        }
    }

    /// Returns when everything that was appended before is written.
    pub(crate) async fn flush(&self) {
        let (reply, written) = oneshot::channel();
        self.state.lock().flushes.push(reply);
        self.wake.notify_one();
        // If the writer has ended, it has written what it could.
        drop(written.await);
    }

    pub(crate) fn queued(&self) -> usize {
        self.state.lock().queue.held()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// Called when the rows that the writer took have been written or given up.
    pub(super) fn taken_rows_finished(&self) {
        self.state.lock().queue.written();
    }

    /// Waits for a while, or until the journal is closed.
    pub(super) async fn pause(&self, pause: Duration) {
        let until = Instant::now() + pause;
        while Instant::now() < until && !self.is_closed() {
            drop(tokio::time::timeout_at(until.into(), self.wake.notified()).await);
        }
    }

    /// Accepts no more rows. The writer ends when the queue is empty.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.wake.notify_one();
    }

    /// Waits for rows, and then a little longer for more. Returns `None` when the journal is closed and empty.
    pub(super) async fn next(
        &self,
        rows: &mut Vec<JournalRow>,
        until: Instant,
    ) -> Option<Vec<oneshot::Sender<()>>> {
        let mut gathered = None;
        loop {
            let due = {
                let mut state = self.state.lock();
                if state.closed && state.queue.is_empty() && state.flushes.is_empty() {
                    return None;
                }
                let is_due_now =
                    state.closed || !state.flushes.is_empty() || state.queue.len() >= BATCH_ROWS;
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
                due
            };
            drop(tokio::time::timeout_at(due.into(), self.wake.notified()).await);
        }
    }
}
