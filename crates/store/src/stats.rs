//! Counters for metrics and alerts, all of them cheap to read and to increment.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::queue::journal_queue::Queued;
use crate::records::settled::SettledSums;
use crate::sync::AtomicBool;

/// Pending work in the database, of all nodes together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Callbacks that are neither delivered nor given up.
    pub callbacks: u64,
    /// The age of the oldest open hold.
    pub oldest_hold: Option<Duration>,
}

impl Backlog {
    pub(crate) fn new(callbacks: i64, oldest_hold_ms: Option<i64>) -> Self {
        let age = |ms: i64| Duration::from_millis(u64::try_from(ms).unwrap_or(0));
        Self {
            callbacks: u64::try_from(callbacks).unwrap_or(0),
            oldest_hold: oldest_hold_ms.map(age),
        }
    }
}

/// The values of all counters at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Commands that wait for the writer.
    pub queue_depth: u64,
    /// Open holds: with `SQLite` all in the database, with `PostgreSQL` those that this node has opened.
    pub open_holds: u64,
    /// Transactions committed.
    pub batches: u64,
    /// Commands in these transactions.
    pub commands: u64,
    /// Transactions that failed. Their closes were kept and retried.
    pub commits_failed: u64,
    /// Closes whose hold was already closed or never became durable.
    pub late_closes: u64,
    /// Closes that wait for a retry after a failure.
    pub retried_closes: u64,
    /// Closes that the database refuses even in a transaction of their own. This raises an alert.
    pub stuck_closes: u64,
    /// Open calls whose hold was lost with a failed commit. They are charged when they end.
    pub lost_holds: u64,
    /// Settlements that charged more than their hold.
    pub above_hold: u64,
    /// Settlements with a non-empty meter but no charge.
    pub zero_charges: u64,
    /// Charges outside the range that can be stored, which cannot be booked. This raises an alert.
    pub unbookable: u64,
    /// Holds closed as abandoned, including those closed at the start.
    pub abandoned: u64,
    /// The number of times that the row cache was dropped because another process had written.
    pub foreign_writes: u64,
    /// The number of times that the log was copied into the database.
    pub checkpoints: u64,
    /// Frames in the log after the last commit.
    pub wal_frames: u64,
    /// Free bytes on the disk of the database.
    pub disk_free_bytes: u64,
    /// Journal rows that wait to be written.
    pub journal_queue: u64,
    /// Journal rows written.
    pub journal_written: u64,
    /// Journal rows dropped: queue full, disk nearly full, or the journal cannot be written.
    pub journal_dropped: u64,
    /// Journal rows written without their bodies, because there was no room for them.
    pub journal_bodies_dropped: u64,
}

macro_rules! counters {
    ($($name:ident),* $(,)?) => {
        /// The counters behind [`Stats`].
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)*
            /// The settled sums, by price version.
            pub(crate) settled: SettledSums,
            /// Whether a transaction could not begin or be committed, and no commit has succeeded since.
            pub(crate) failing: Flag,
            /// Whether there is too little disk space to admit calls.
            pub(crate) below_floor: Flag,
            /// Whether there is too little disk space for the journal.
            pub(crate) below_journal_floor: Flag,
        }

        impl Counters {
            /// Counts a journal row that was dropped or queued without its bodies.
            pub(crate) fn journal_queued(&self, queued: Queued) {
                match queued {
                    Queued::Whole => {}
                    Queued::WithoutBodies => self.journal_bodies_dropped.add(1),
                    Queued::Dropped => self.journal_dropped.add(1),
                }
            }

            /// Reads all counters. The queue lengths are left out, because only the queues know them.
            pub(crate) fn read(&self) -> Stats {
                Stats { $($name: self.$name.get(),)* ..Stats::default() }
            }
        }
    };
}

counters! {
    open_holds, batches, commands, commits_failed, late_closes, retried_closes, stuck_closes, lost_holds, above_hold,
    zero_charges, unbookable, abandoned, foreign_writes, checkpoints, wal_frames, disk_free_bytes,
    journal_written, journal_dropped, journal_bodies_dropped,
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn sub(&self, count: u64) {
        self.0.fetch_sub(count, Ordering::Relaxed);
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Flag(AtomicBool);

impl Flag {
    pub(crate) fn set(&self, on: bool) {
        self.0.store(on, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
