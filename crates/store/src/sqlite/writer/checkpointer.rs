//! The keeper: folds the log into the database and watches the disk, off the writer's thread.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::disk_reserve::{BALLAST_BYTES, Ballast};
use crate::disk::free_bytes;
use crate::sqlite::connection::connect::PAGE_BYTES;
use crate::sqlite::connection::files::folder;
use crate::stats::Counters;
use crate::sync::Mutex;

/// How often the log and the disk are looked at.
pub(crate) const TICK: Duration = Duration::from_millis(250);
/// After so much quiet what is left in the log is folded too, however little.
const QUIET: Duration = Duration::from_secs(5);
/// When a reader keeps the log from starting anew, how long until it is tried again.
const BLOCKED_PAUSE: Duration = Duration::from_secs(2);
/// Long before the log is too long it is copied without holding anyone up: one part in so many.
const EARLY_FRACTION: u64 = 8;
/// Copies beside the writer before it is made to wait for the last one.
const PASSES_MAX: usize = 4;
/// A last copy that would take longer than this is put off, and for how long a log.
const WRITER_WAITS_MAX: Duration = Duration::from_millis(50);
const OVERSIZE_FACTOR: u64 = 4;
/// So few frames are copied in a moment.
const LAST_FRAMES: u64 = 256;

pub(crate) struct Checkpointer {
    pub(crate) path: PathBuf,
    pub(crate) connection: Connection,
    pub(crate) checkpoint_lock: Arc<Mutex<u64>>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) ballast: Arc<Ballast>,
    pub(crate) wal_bytes_max: u64,
    pub(crate) disk_floor_bytes: u64,
    pub(crate) progress: LogProgress,
}

/// What the keeper saw at its last tick.
#[derive(Debug)]
pub(crate) struct LogProgress {
    batches: u64,
    changed_at: Instant,
    /// Batches, frames and time of the last folding.
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
                // Laying it must not be what fills the disk.
                let room = free > self.disk_floor_bytes.saturating_add(2 * BALLAST_BYTES);
                if room && let Err(error) = self.ballast.create() {
                    tracing::warn!(%error, "the ballast file could not be written");
                }
            }
            Err(error) => tracing::warn!(%error, "free room on the disk is unknown"),
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
        // Either nobody has written since the last time, or a reader holds on to the log.
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
            // Unless the writer is at work the whole time, this is all it takes.
            self.copy_log().map(drop)
        } else {
            return;
        };
        match done {
            Ok(()) => self.counters.checkpoints.add(1),
            Err(error) => tracing::warn!(%error, "the log could not be folded into the database"),
        }
        self.progress.copied_batches = batches;
        self.progress.copied_frames = self.counters.wal_frames.get();
        self.progress.copied_at = now;
    }

    /// Folds the log so that the writer can begin it anew. The bulk is copied beside the writer;
    /// only the last few pages, which came meanwhile, are copied while it waits. On a disk that is
    /// slow just now that is put off, unless the log has grown far too long.
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

    /// Copies what the log holds now; answers up to which frame it is copied.
    fn copy_log(&self) -> rusqlite::Result<u64> {
        // Passive: it never waits for a reader or writer, and leaves alone the log's header, whose
        // change would look to the writer like somebody else's commit.
        let checkpoint = "PRAGMA wal_checkpoint(PASSIVE)";
        let copied: i64 = self
            .connection
            .query_row(checkpoint, [], |row| row.get(2))?;
        Ok(u64::try_from(copied).unwrap_or(0))
    }
}
