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
const STUBBORN_PAUSE: Duration = Duration::from_secs(2);
/// Long before the log is too long it is copied without holding anyone up: one part in so many.
const EARLY_PART: u64 = 8;
/// Copies beside the writer before it is made to wait for the last one.
const PASSES_MAX: usize = 4;
/// A last copy that would take longer than this is put off, and for how long a log.
const WRITER_WAITS_MAX: Duration = Duration::from_millis(50);
const FAR_TOO_LONG: u64 = 4;
/// So few frames are copied in a moment.
const LAST_FRAMES: u64 = 256;

pub(crate) struct Keeper {
    pub(crate) path: PathBuf,
    pub(crate) connection: Connection,
    pub(crate) gate: Arc<Mutex<u64>>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) ballast: Arc<Ballast>,
    pub(crate) wal_bytes_max: u64,
    pub(crate) disk_floor_bytes: u64,
    pub(crate) seen: Seen,
}

/// What the keeper saw at its last tick.
#[derive(Debug)]
pub(crate) struct Seen {
    batches: u64,
    changed_at: Instant,
    /// Batches, frames and time of the last folding.
    folded_batches: u64,
    folded_frames: u64,
    folded_at: Instant,
}

impl Default for Seen {
    fn default() -> Self {
        let now = Instant::now();
        Self {
            batches: 0,
            changed_at: now,
            folded_batches: 0,
            folded_frames: 0,
            folded_at: now,
        }
    }
}

impl Keeper {
    pub(crate) fn tick(&mut self) {
        self.look_at_disk();
        self.look_at_log(Instant::now());
    }

    pub(crate) fn look_at_disk(&self) {
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
                if room && let Err(error) = self.ballast.lay() {
                    tracing::warn!(%error, "the ballast file could not be written");
                }
            }
            Err(error) => tracing::warn!(%error, "free room on the disk is unknown"),
        }
    }

    fn look_at_log(&mut self, now: Instant) {
        let batches = self.counters.batches.get();
        if batches != self.seen.batches {
            self.seen.batches = batches;
            self.seen.changed_at = now;
        }
        let frames = self.counters.wal_frames.get();
        let bytes = frames.saturating_mul(u64::from(PAGE_BYTES));
        // Either nobody has written since the last time, or a reader holds on to the log.
        let same_log = self.seen.folded_frames > 0 && frames >= self.seen.folded_frames;
        if same_log && now.duration_since(self.seen.folded_at) < STUBBORN_PAUSE {
            return;
        }
        let quiet = now.duration_since(self.seen.changed_at) > QUIET;
        let folded = if bytes > self.wal_bytes_max {
            self.fold(bytes)
        } else if bytes > self.wal_bytes_max / EARLY_PART
            || (quiet && batches != self.seen.folded_batches)
        {
            // Unless the writer is at work the whole time, this is all it takes.
            self.copy().map(drop)
        } else {
            return;
        };
        match folded {
            Ok(()) => self.counters.checkpoints.add(1),
            Err(error) => tracing::warn!(%error, "the log could not be folded into the database"),
        }
        self.seen.folded_batches = batches;
        self.seen.folded_frames = self.counters.wal_frames.get();
        self.seen.folded_at = now;
    }

    /// Folds the log so that the writer can begin it anew. The bulk is copied beside the writer;
    /// only the last few pages, which came meanwhile, are copied while it waits. On a disk that is
    /// slow just now that is put off, unless the log has grown far too long.
    fn fold(&self, bytes: u64) -> rusqlite::Result<()> {
        let mut took = Duration::ZERO;
        for _ in 0..PASSES_MAX {
            let begun = Instant::now();
            let copied = self.copy()?;
            took = begun.elapsed();
            if self.counters.wal_frames.get().saturating_sub(copied) < LAST_FRAMES {
                break;
            }
        }
        if took > WRITER_WAITS_MAX && bytes < self.wal_bytes_max.saturating_mul(FAR_TOO_LONG) {
            return Ok(());
        }
        let mut folds = self.gate.lock();
        self.copy()?;
        *folds += 1;
        Ok(())
    }

    /// Copies what the log holds now; answers up to which frame it is copied.
    fn copy(&self) -> rusqlite::Result<u64> {
        // Passive: it never waits for a reader or writer, and leaves alone the log's header, whose
        // change would look to the writer like somebody else's commit.
        let checkpoint = "PRAGMA wal_checkpoint(PASSIVE)";
        let copied: i64 = self
            .connection
            .query_row(checkpoint, [], |row| row.get(2))?;
        Ok(u64::try_from(copied).unwrap_or(0))
    }
}
