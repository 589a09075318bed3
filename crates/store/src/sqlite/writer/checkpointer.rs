//! The checkpointer: copies the log into the database and monitors the disk, outside the writer's thread.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::disk_reserve::{DiskReserve, RESERVE_BYTES};
use crate::disk::free_bytes;
use crate::sqlite::connection::connect::PAGE_BYTES;
use crate::sqlite::connection::files::folder;
use crate::stats::Counters;
use crate::sync::Mutex;

/// The interval at which the log and the disk are checked.
pub(crate) const TICK: Duration = Duration::from_millis(250);
/// Even a short log is copied if nothing was written for this time.
const QUIET: Duration = Duration::from_secs(5);
/// The pause before the next attempt, if a reader keeps the log from being reset.
const BLOCKED_PAUSE: Duration = Duration::from_secs(2);
/// As soon as the log exceeds its maximum divided by this number, it is copied without delaying the writer.
const EARLY_FRACTION: u64 = 8;
/// The maximum number of copies that are made while the writer continues. The writer then waits for one last copy.
const PASSES_MAX: usize = 4;
/// If the previous copy took longer than this, the copy for which the writer waits is postponed until the log exceeds
/// `OVERSIZE_FACTOR` times its maximum.
const WRITER_WAITS_MAX: Duration = Duration::from_millis(50);
const OVERSIZE_FACTOR: u64 = 4;
/// The number of frames that can be copied quickly enough for the writer to wait.
const LAST_FRAMES: u64 = 256;

pub(crate) struct Checkpointer {
    pub(crate) path: PathBuf,
    pub(crate) connection: Connection,
    pub(crate) checkpoint_lock: Arc<Mutex<u64>>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) disk_reserve: Arc<DiskReserve>,
    pub(crate) wal_bytes_max: u64,
    pub(crate) disk_floor_bytes: u64,
    pub(crate) progress: LogProgress,
}

/// The state of the log at the last tick.
#[derive(Debug)]
pub(crate) struct LogProgress {
    batches: u64,
    changed_at: Instant,
    /// Batches, frames and time of the last checkpoint.
    copied_batches: u64,
    copied_frames: u64,
    copied_at: Instant,
}

impl Default for LogProgress {
    fn default() -> Self {
        let now = Instant::now();
        Self {
            batches: 0,
            changed_at: now,
            copied_batches: 0,
            copied_frames: 0,
            copied_at: now,
        }
    }
}

impl Checkpointer {
    pub(crate) fn tick(&mut self) {
        self.check_disk();
        self.check_log(Instant::now());
    }

    pub(crate) fn check_disk(&self) {
        match free_bytes(folder(&self.path)) {
            Ok(free) => {
                self.counters.disk_free_bytes.set(free);
                let below = free < self.disk_floor_bytes;
                if below != self.counters.below_floor.get() {
                    tracing::warn!(
                        free_bytes = free,
                        below,
                        "the disk crossed the floor for admissions"
                    );
                }
                self.counters.below_floor.set(below);
                self.counters
                    .below_journal_floor
                    .set(free < self.disk_floor_bytes.saturating_mul(2));
                // Creating the reserve must not fill the disk.
                let room = free > self.disk_floor_bytes.saturating_add(2 * RESERVE_BYTES);
                if room && let Err(error) = self.disk_reserve.create() {
                    tracing::warn!(%error, "the reserve of disk space could not be written");
                }
            }
            Err(error) => tracing::warn!(%error, "the free disk space is unknown"),
        }
    }

    fn check_log(&mut self, now: Instant) {
        let batches = self.counters.batches.get();
        if batches != self.progress.batches {
            self.progress.batches = batches;
            self.progress.changed_at = now;
        }
        let frames = self.counters.wal_frames.get();
        let bytes = frames.saturating_mul(u64::from(PAGE_BYTES));
        // Either nothing was written since the last copy, or a reader keeps the log from being reset.
        let same_log = self.progress.copied_frames > 0 && frames >= self.progress.copied_frames;
        if same_log && now.duration_since(self.progress.copied_at) < BLOCKED_PAUSE {
            return;
        }
        let quiet = now.duration_since(self.progress.changed_at) > QUIET;
        let done = if bytes > self.wal_bytes_max {
            self.checkpoint(bytes)
        } else if bytes > self.wal_bytes_max / EARLY_FRACTION
            || (quiet && batches != self.progress.copied_batches)
        {
            // Unless the writer writes without a pause, this is enough for the log to be reset.
            self.copy_log().map(drop)
        } else {
            return;
        };
        match done {
            Ok(()) => self.counters.checkpoints.add(1),
            Err(error) => {
                tracing::warn!(%error, "the write-ahead log could not be copied into the database");
            }
        }
        self.progress.copied_batches = batches;
        self.progress.copied_frames = self.counters.wal_frames.get();
        self.progress.copied_at = now;
    }

    /// Copies the log so that the writer can restart it from the beginning. Most of it is copied while the writer
    /// continues. Only the last few pages, which were added meanwhile, are copied while the writer waits. If the disk
    /// is slow at the moment, that last part is postponed, unless the log is far too long.
    fn checkpoint(&self, bytes: u64) -> rusqlite::Result<()> {
        let mut took = Duration::ZERO;
        for _ in 0..PASSES_MAX {
            let begun = Instant::now();
            let copied = self.copy_log()?;
            took = begun.elapsed();
            if self.counters.wal_frames.get().saturating_sub(copied) < LAST_FRAMES {
                break;
            }
        }
        if took > WRITER_WAITS_MAX && bytes < self.wal_bytes_max.saturating_mul(OVERSIZE_FACTOR) {
            return Ok(());
        }
        let mut checkpoints = self.checkpoint_lock.lock();
        self.copy_log()?;
        *checkpoints += 1;
        Ok(())
    }

    /// Copies the current log. Returns the number of frames that have been copied.
    fn copy_log(&self) -> rusqlite::Result<u64> {
        // PASSIVE never waits for a reader or a writer. It also does not touch the header of the log: the writer would
        // mistake a changed header for a commit of another process.
        let checkpoint = "PRAGMA wal_checkpoint(PASSIVE)";
        let copied: i64 = self
            .connection
            .query_row(checkpoint, [], |row| row.get(2))?;
        Ok(u64::try_from(copied).unwrap_or(0))
    }
}
