//! Opens a store on `SQLite` files, and starts and stops its threads. `operations.rs` and `statement_reads.rs`
//! implement the operations of [`Store`](crate::Store).

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::Connection;
use rusqlite::hooks::Wal;

use super::journal::{Journal, JournalOptions};
use crate::error::OpenError;
use crate::queue::command_queue::{Bounds, CommandQueue};
use crate::queue::durable::SyncQueue;
use crate::records::recovery::Recovery;
use crate::settings::{COMMAND_SEARCH_MAX, Settings};
use crate::sqlite::connection::connect::{
    READER_CACHE_KIB, SEARCHER_CACHE_KIB, WRITER_CACHE_KIB, make_writer, open, open_error, reader,
};
use crate::sqlite::connection::open::{Opened, for_command, for_server, journal_path, prepared};
use crate::sqlite::connection::server_lock::ServerLock;
use crate::sqlite::reads::pool::{ReadLimits, Reads};
use crate::sqlite::schema::migrations::Schema;
use crate::sqlite::writer::checkpointer::{self, Checkpointer, LogProgress};
use crate::sqlite::writer::disk_reserve::DiskReserve;
use crate::sqlite::writer::shared_ledger::SharedLedger;
use crate::sqlite::writer::thread::{self, WriterContext};
use crate::stats::Counters;
use crate::sync;
use crate::ticker::Ticker;

/// The store is unhealthy if the writer or the disk has not answered for this time.
pub(super) const HEALTHY_WITHIN: Duration = Duration::from_secs(2);
/// The interval at which the queue is searched for commands that have waited too long.
const EXPIRE_EVERY: Duration = Duration::from_millis(50);
/// The number of connections for lookups, which calls wait for.
const READERS: usize = 2;
/// The number of connections for searches of the ledger. Searches of the journal have as many of their own.
const SEARCHERS: usize = 2;

pub(crate) struct Sqlite {
    pub(super) path: PathBuf,
    pub(super) queue: Arc<CommandQueue>,
    pub(super) sync_queue: Arc<SyncQueue>,
    pub(super) shared_ledger: Arc<SharedLedger>,
    pub(super) counters: Arc<Counters>,
    pub(super) threads: Vec<JoinHandle<()>>,
    pub(super) reads: Reads,
    /// Connections for lists, searches and statements, which must not delay lookups.
    pub(super) searches: Reads,
    pub(super) search_limits: ReadLimits,
    /// Opened when the journal is first searched.
    pub(super) journal_reads: Mutex<Option<Arc<Reads>>>,
    pub(super) server: Option<Server>,
    pub(super) _expiry: Ticker,
}

/// The parts that only a server has. The lock is dropped last, so that no other process opens the database before the
/// rest has ended.
pub(super) struct Server {
    pub(super) journal: Journal,
    pub(super) _checkpointer: Ticker,
    pub(super) _lock: ServerLock,
}

impl Sqlite {
    pub(crate) fn open(path: &Path, settings: &Settings) -> Result<(Self, Recovery), OpenError> {
        Self::open_with(path, settings, Arc::default(), |_| Ok(()))
    }

    /// Opens the store of a server. No batch is written while `checkpoint_lock` is held. `prepare` may change the
    /// writer's connection before it is used.
    pub(crate) fn open_with(
        path: &Path,
        settings: &Settings,
        checkpoint_lock: Arc<sync::Mutex<u64>>,
        prepare: impl FnOnce(&mut Connection) -> rusqlite::Result<()>,
    ) -> Result<(Self, Recovery), OpenError> {
        let lock = ServerLock::take(path)?;
        let counters = Arc::new(Counters::default());
        let (mut opened, recovery) = for_server(path, settings, &counters)?;
        count_frames(&mut opened.writer, &counters)
            .and_then(|()| prepare(&mut opened.writer))
            .map_err(|error| open_error(path, error))?;
        // Without a floor for free disk space, no reserve is needed.
        let disk_reserve = match settings.disk_floor_bytes {
            0 => DiskReserve::none(),
            _ => DiskReserve::of(path),
        };
        let disk_reserve = Arc::new(disk_reserve);
        let checkpointer =
            Self::checkpointer(path, settings, &counters, &checkpoint_lock, &disk_reserve)?;
        let journal = Self::start_journal(path, settings, &counters)?;
        let server = Server {
            journal,
            _checkpointer: checkpointer,
            _lock: lock,
        };
        let sqlite = Self::start(
            path,
            settings,
            opened,
            counters,
            checkpoint_lock,
            disk_reserve,
            Some(server),
        )?;
        Ok((sqlite, recovery))
    }

    pub(crate) fn attach(path: &Path, settings: &Settings) -> Result<Self, OpenError> {
        let opened = for_command(path, settings)?;
        let checkpoint_lock = Arc::new(sync::Mutex::new(0));
        let disk_reserve = Arc::new(DiskReserve::none());
        // A process of the command line makes one change and waits for it, so its batches need not wait for more
        // changes. Its searches delay only its own user, so they may take longer.
        let settings = Settings {
            gather: Duration::ZERO,
            search_max: COMMAND_SEARCH_MAX,
            sync_delay: Duration::ZERO,
            ..settings.clone()
        };
        Self::start(
            path,
            &settings,
            opened,
            Arc::new(Counters::default()),
            checkpoint_lock,
            disk_reserve,
            None,
        )
    }

    fn start(
        path: &Path,
        settings: &Settings,
        opened: Opened,
        counters: Arc<Counters>,
        checkpoint_lock: Arc<sync::Mutex<u64>>,
        disk_reserve: Arc<DiskReserve>,
        server: Option<Server>,
    ) -> Result<Self, OpenError> {
        let sql = |error| open_error(path, error);
        let io = |source| OpenError::Io {
            path: path.to_owned(),
            source,
        };
        let queue = Arc::new(CommandQueue::new(Bounds {
            gather: settings.gather,
            waiting_max: settings.queue_max,
            call_wait_max: settings.queue_wait_max,
            change_wait_max: settings.lock_wait_max,
        }));
        let sync_queue =
            SyncQueue::new(settings.sync_delay, settings.quick_sync, Arc::clone(&queue));
        let shared_ledger = Arc::new(SharedLedger::new(&queue));
        let shared = WriterContext {
            queue: Arc::clone(&queue),
            sync_queue: Arc::clone(&sync_queue),
            shared_ledger: Arc::clone(&shared_ledger),
            checkpoint_lock,
            disk_reserve,
            gather: settings.gather,
        };
        let readers = readers(path, READERS).map_err(sql)?;
        let reads = Reads::new("store-read", readers, ReadLimits::LOOKUPS).map_err(io)?;
        let search_limits = ReadLimits::searches(settings.search_max);
        let connections = searchers(path).map_err(sql)?;
        let searches = Reads::new("store-search", connections, search_limits).map_err(io)?;
        let expiry = Ticker::start("store-expiry", EXPIRE_EVERY, {
            let queue = Arc::clone(&queue);
            move || queue.expire()
        });
        let expiry = expiry.map_err(io)?;

        let Opened {
            writer,
            log,
            epoch,
            writer_lock,
        } = opened;
        let sync_thread = std::thread::Builder::new()
            .name("store-sync".to_owned())
            .spawn({
                let sync_queue = Arc::clone(&sync_queue);
                move || sync_queue.run(|| log.sync_data())
            });
        let sync_thread = sync_thread.map_err(io)?;
        let writer_thread = std::thread::Builder::new()
            .name("store-write".to_owned())
            .spawn({
                let (counters, limits) = (Arc::clone(&counters), settings.book_limits());
                move || thread::write(&writer, epoch, limits, counters, writer_lock, shared)
            });
        let threads = vec![writer_thread.map_err(io)?, sync_thread];
        Ok(Self {
            path: path.to_owned(),
            queue,
            sync_queue,
            shared_ledger,
            counters,
            threads,
            reads,
            searches,
            search_limits,
            journal_reads: Mutex::new(None),
            server,
            _expiry: expiry,
        })
    }

    fn checkpointer(
        path: &Path,
        settings: &Settings,
        counters: &Arc<Counters>,
        checkpoint_lock: &Arc<sync::Mutex<u64>>,
        disk_reserve: &Arc<DiskReserve>,
    ) -> Result<Ticker, OpenError> {
        let mut connection =
            open(path, rusqlite::OpenFlags::empty()).map_err(|error| open_error(path, error))?;
        make_writer(&mut connection, settings.lock_wait_max)
            .map_err(|error| open_error(path, error))?;
        let cache = connection.pragma_update(None, "cache_size", -READER_CACHE_KIB);
        cache.map_err(|error| open_error(path, error))?;
        let mut checkpointer = Checkpointer {
            path: path.to_owned(),
            connection,
            checkpoint_lock: Arc::clone(checkpoint_lock),
            counters: Arc::clone(counters),
            disk_reserve: Arc::clone(disk_reserve),
            wal_bytes_max: settings.wal_bytes_max,
            disk_floor_bytes: settings.disk_floor_bytes,
            progress: LogProgress::default(),
        };
        // Checks the disk before the first admission.
        checkpointer.check_disk();
        let ticker = Ticker::start("store-keep", checkpointer::TICK, move || {
            checkpointer.tick();
        });
        ticker.map_err(|source| OpenError::Io {
            path: path.to_owned(),
            source,
        })
    }

    fn start_journal(
        path: &Path,
        settings: &Settings,
        counters: &Arc<Counters>,
    ) -> Result<Journal, OpenError> {
        let path = journal_path(path);
        let connection = prepared(&path, Schema::Journal, settings.lock_wait_max)?;
        let sql = |error| open_error(&path, error);
        // The journal has its own thread, which may wait for a checkpoint.
        connection
            .pragma_update(None, "wal_autocheckpoint", 1_000)
            .map_err(sql)?;
        // The cache is as large as the ledger writer's, because every batch changes the totals of the current minute,
        // hour and day.
        connection
            .pragma_update(None, "cache_size", -WRITER_CACHE_KIB)
            .map_err(sql)?;
        let options = JournalOptions {
            bounds: settings.journal_bounds(),
            retention_days: settings.journal_retention_days,
        };
        let journal = Journal::start(connection, options, Arc::clone(counters));
        journal.map_err(|source| OpenError::Io {
            path: path.clone(),
            source,
        })
    }
}

fn readers(path: &Path, count: usize) -> rusqlite::Result<Vec<Connection>> {
    (0..count).map(|_| reader(path)).collect()
}

/// Opens connections for searches. Their cache is larger, because searches read many pages more than once.
pub(super) fn searchers(path: &Path) -> rusqlite::Result<Vec<Connection>> {
    let connections = readers(path, SEARCHERS)?;
    for connection in &connections {
        connection.pragma_update(None, "cache_size", -SEARCHER_CACHE_KIB)?;
    }
    Ok(connections)
}

/// Counts the frames of the log, for the checkpointer.
fn count_frames(writer: &mut Connection, counters: &Arc<Counters>) -> rusqlite::Result<()> {
    let counters = Arc::clone(counters);
    writer.wal_hook(Some(move |_: &mut Wal, frames| {
        counters.wal_frames.set(u64::try_from(frames).unwrap_or(0));
        Ok(())
    }))
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        self.queue.close();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the store panicked");
            }
        }
    }
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sqlite")
            .field("path", &self.path)
            .field("server", &self.server.is_some())
            .finish_non_exhaustive()
    }
}
