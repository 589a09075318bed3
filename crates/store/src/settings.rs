//! How a store is opened: where it lies and how much of everything it may use.

use std::path::PathBuf;
use std::time::Duration;

/// Settings of a store; every bound has a default.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The database file; its companions (`-wal`, `-shm`, `-lock`, `-journal`) lie beside it.
    pub path: PathBuf,
    /// How far apart batches start under load, and how long a lone settlement waits for company.
    pub gather: Duration,
    /// How long a committed batch may wait for its sync while nobody waits for it.
    pub sync_delay: Duration,
    /// Admissions that may wait for the writer; one more is refused as busy.
    pub queue_max: usize,
    /// How long an admission waits for the writer before it is refused as busy.
    pub queue_wait_max: Duration,
    /// How long the writer, or a command beside a running server, waits for another writer.
    pub lock_wait_max: Duration,
    /// Wallet and key rows kept by the writer, of each kind.
    pub cached_rows_max: usize,
    /// The write-ahead log is folded into the database when it is larger than this.
    pub wal_bytes_max: u64,
    /// Free bytes below which admission stops; the journal stops at twice as much.
    pub disk_floor_bytes: u64,
    /// Days a journal row is kept; 0 keeps it for ever.
    pub journal_retention_days: u32,
    /// Journal rows that may wait to be written; what comes above is dropped and counted.
    pub journal_queue_max: usize,
}

impl Settings {
    /// The defaults, for a database at `path`.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            ..Self::default()
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            path: PathBuf::from("tollgate-data/tollgate.db"),
            gather: Duration::from_millis(2),
            sync_delay: Duration::from_millis(5),
            queue_max: 4_096,
            queue_wait_max: Duration::from_millis(250),
            lock_wait_max: Duration::from_secs(5),
            cached_rows_max: 16_384,
            wal_bytes_max: 64 * 1024 * 1024,
            disk_floor_bytes: 512 * 1024 * 1024,
            journal_retention_days: 30,
            journal_queue_max: 16_384,
        }
    }
}
