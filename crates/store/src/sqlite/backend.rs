//! Connects the parts, and implements the operations of [`Store`](crate::Store) on them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use ledger::UnixMs;
use parking_lot::Mutex;
use rusqlite::Connection;
use rusqlite::hooks::Wal;
use tokio::sync::oneshot;

use super::journal;
use super::journal::{Journal, JournalOptions};
use super::reads::{accounts as lookups, entries};
use super::tasks::lookups as task_looks;
use crate::books::Limits;
use crate::chain::WalletHead;
use crate::error::{AdmitError, OpenError, StoreError};
use crate::queue::command::Command;
use crate::queue::command_queue::{Bounds, CommandQueue, PushError};
use crate::queue::durable::SyncQueue;
use crate::records::accounts::{KeyHead, KeyRow, WalletRow};
use crate::records::call::{Admit, Admitted, Close};
use crate::records::entries::{EntryQuery, EntryRow, PriceRow};
use crate::records::ids::{Digest, KeyId, WalletId};
use crate::records::journal::{JournalEntry, JournalQuery, JournalRow};
use crate::records::task::TaskView;
use crate::records::task_id::TaskId;
use crate::records::task_list::{TaskPage, TaskQuery};
use crate::settings::Settings;
use crate::sqlite::connection::connect::{READER_CACHE_KIB, make_writer, open, open_error, reader};
use crate::sqlite::connection::files::size;
use crate::sqlite::connection::open::{Opened, for_command, for_server, journal_path, prepared};
use crate::sqlite::connection::server_lock::ServerLock;
use crate::sqlite::reads::pool::Reads;
use crate::sqlite::reads::verify::verify;
use crate::sqlite::schema::migrations::Schema;
use crate::sqlite::writer::checkpointer::{self, Checkpointer, LogProgress};
use crate::sqlite::writer::disk_reserve::Ballast;
use crate::sqlite::writer::ledger::Ledger;
use crate::sqlite::writer::shared_ledger::SharedLedger;
use crate::sqlite::writer::thread::{Writer, WriterContext};
use crate::sqlite::writer::writer_lock::WriterLock;
use crate::stats::{Counters, Stats};
use crate::store::Recovery;
use crate::sync;
use crate::ticker::Ticker;
use crate::verify::VerifyReport;

/// If the writer or the disk has not answered for this long, the store is unhealthy.
const HEALTHY_WITHIN: Duration = Duration::from_secs(2);
/// How often commands that have waited too long are looked for.
const EXPIRE_EVERY: Duration = Duration::from_millis(50);
const READERS: usize = 2;

pub(crate) struct Sqlite {
    path: PathBuf,
    queue: Arc<CommandQueue>,
    sync_queue: Arc<SyncQueue>,
    shared_ledger: Arc<SharedLedger>,
    counters: Arc<Counters>,
    threads: Vec<JoinHandle<()>>,
    reads: Reads,
    /// Opened when the journal is first searched.
    journal_reads: Mutex<Option<Arc<Reads>>>,
    server: Option<Server>,
    _expiry: Ticker,
}

/// What only a server has. The lock is dropped last, because nobody else may open the database before.
struct Server {
    journal: Journal,
    _checkpointer: Ticker,
    _lock: ServerLock,
}

impl Sqlite {
    pub(crate) fn open(path: &Path, settings: &Settings) -> Result<(Self, Recovery), OpenError> {
        Self::open_with(path, settings, Arc::default(), |_| Ok(()))
    }

    /// Opens the store of a server. Whoever holds `checkpoint_lock` has the log to itself. `prepare` may change
    /// the writer's connection at the end.
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
        // Without a floor, no reserve is needed either.
        let ballast = match settings.disk_floor_bytes {
            0 => Ballast::none(),
            _ => Ballast::of(path),
        };
        let ballast = Arc::new(ballast);
        let checkpointer =
            Self::checkpointer(path, settings, &counters, &checkpoint_lock, &ballast)?;
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
            ballast,
            Some(server),
        )?;
        Ok((sqlite, recovery))
    }

    pub(crate) fn attach(path: &Path, settings: &Settings) -> Result<Self, OpenError> {
        let opened = for_command(path, settings)?;
        let checkpoint_lock = Arc::new(sync::Mutex::new(0));
        let ballast = Arc::new(Ballast::none());
        // A command makes one change and waits for it, so there is nothing to gather.
        let settings = Settings {
            gather: Duration::ZERO,
            sync_delay: Duration::ZERO,
            ..settings.clone()
        };
        Self::start(
            path,
            &settings,
            opened,
            Arc::new(Counters::default()),
            checkpoint_lock,
            ballast,
            None,
        )
    }

    fn start(
        path: &Path,
        settings: &Settings,
        opened: Opened,
        counters: Arc<Counters>,
        checkpoint_lock: Arc<sync::Mutex<u64>>,
        ballast: Arc<Ballast>,
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
        let sync_queue = SyncQueue::new(settings.sync_delay, Arc::clone(&queue));
        let shared_ledger = Arc::new(SharedLedger::new(&queue));
        let shared = WriterContext {
            queue: Arc::clone(&queue),
            sync_queue: Arc::clone(&sync_queue),
            shared_ledger: Arc::clone(&shared_ledger),
            checkpoint_lock,
            ballast,
            gather: settings.gather,
        };
        let readers: Result<Vec<Connection>, _> = (0..READERS).map(|_| reader(path)).collect();
        let reads = Reads::new("store-read", readers.map_err(sql)?).map_err(io)?;
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
                move || write(&writer, epoch, limits, counters, writer_lock, shared)
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
        ballast: &Arc<Ballast>,
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
            ballast: Arc::clone(ballast),
            wal_bytes_max: settings.wal_bytes_max,
            disk_floor_bytes: settings.disk_floor_bytes,
            progress: LogProgress::default(),
        };
        // Before anyone is admitted.
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
        // The journal has its own thread, which may wait for the disk.
        connection
            .pragma_update(None, "wal_autocheckpoint", 1_000)
            .map_err(sql)?;
        connection
            .pragma_update(None, "cache_size", -READER_CACHE_KIB)
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

    pub(crate) fn push(&self, command: Command) -> Result<(), PushError> {
        self.queue.push(command)
    }

    pub(crate) fn push_close(&self, command: Command) {
        self.queue.push_close(command);
    }

    /// Decides a call at once, or returns it to be queued.
    pub(crate) fn admit_now(&self, admit: Admit) -> Result<Result<Admitted, AdmitError>, Admit> {
        self.shared_ledger.admit(admit)
    }

    /// Closes a hold at once, or as soon as the writer gets to it.
    pub(crate) fn close(&self, closing: Close) {
        if let Err(closing) = self.shared_ledger.close(closing) {
            self.push_close(Command::Close(closing));
        }
    }

    /// Whether an admission has any chance.
    pub(crate) fn may_admit(&self) -> Result<(), AdmitError> {
        let counters = &self.counters;
        if self.server.is_none()
            || counters.below_floor.get()
            || counters.failing.get()
            || self.sync_queue.is_broken()
        {
            return Err(AdmitError::Unavailable);
        }
        Ok(())
    }

    pub(crate) fn healthy(&self) -> bool {
        !self.counters.failing.get()
            && !self.counters.below_floor.get()
            && !self.sync_queue.is_broken()
            && !self.queue.is_closed()
            && self.queue.oldest() < HEALTHY_WITHIN
            && self.sync_queue.stalled_for() < HEALTHY_WITHIN
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn stats(&self) -> Stats {
        Stats {
            queue_depth: self.queue.depth() as u64,
            journal_queue: self
                .server
                .as_ref()
                .map_or(0, |server| server.journal.queued() as u64),
            ..self.counters.read()
        }
    }

    pub(crate) async fn key_by_digest(
        &self,
        digest: Digest,
    ) -> Result<Option<KeyHead>, StoreError> {
        self.reads
            .run(move |on| lookups::key_by_digest(on, &digest))
            .await
    }

    pub(crate) async fn wallets(&self) -> Result<Vec<WalletRow>, StoreError> {
        self.reads.run(lookups::wallets).await
    }

    pub(crate) async fn find_wallet(
        &self,
        name_or_id: String,
    ) -> Result<Option<WalletRow>, StoreError> {
        self.reads
            .run(move |on| lookups::find_wallet(on, &name_or_id))
            .await
    }

    pub(crate) async fn keys(&self, wallet: Option<WalletId>) -> Result<Vec<KeyRow>, StoreError> {
        self.reads.run(move |on| lookups::keys(on, wallet)).await
    }

    pub(crate) async fn find_key(&self, key: KeyId) -> Result<Option<KeyRow>, StoreError> {
        self.reads.run(move |on| lookups::find_key(on, key)).await
    }

    pub(crate) async fn entries(&self, query: EntryQuery) -> Result<Vec<EntryRow>, StoreError> {
        self.reads.run(move |on| entries::entries(on, &query)).await
    }

    pub(crate) async fn prices(&self) -> Result<Vec<PriceRow>, StoreError> {
        self.reads.run(entries::prices).await
    }

    pub(crate) async fn find_task(
        &self,
        wallet: WalletId,
        task: TaskId,
    ) -> Result<Option<TaskView>, StoreError> {
        self.reads
            .run(move |on| task_looks::find(on, wallet, task))
            .await
    }

    pub(crate) async fn tasks(&self, query: TaskQuery) -> Result<TaskPage, StoreError> {
        self.reads.run(move |on| task_looks::list(on, &query)).await
    }

    pub(crate) async fn task_channels(&self) -> Result<Vec<(Box<str>, u64)>, StoreError> {
        self.reads.run(task_looks::channels).await
    }

    /// Read on the pool, so that the writer wakes up only if there is work.
    pub(crate) async fn has_due_tasks(&self, now: UnixMs) -> Result<bool, StoreError> {
        self.reads
            .run(move |on| task_looks::has_due(on, "tasks", now))
            .await
    }

    pub(crate) async fn has_due_callbacks(&self, now: UnixMs) -> Result<bool, StoreError> {
        self.reads
            .run(move |on| task_looks::has_due(on, "callbacks", now))
            .await
    }

    /// Uses its own thread and connection, because it reads everything and must not delay lookups.
    pub(crate) async fn verify(&self, noted: Vec<WalletHead>) -> Result<VerifyReport, StoreError> {
        let connection = reader(&self.path)?;
        let (reply, answer) = oneshot::channel();
        let thread = std::thread::Builder::new().name("store-verify".to_owned());
        let spawned = thread.spawn(move || drop(reply.send(verify(&connection, &noted))));
        spawned.map_err(|_| StoreError::Unavailable)?;
        Ok(answer.await.map_err(|_| StoreError::Unavailable)??)
    }

    pub(crate) fn journal_append(&self, row: JournalRow) {
        match &self.server {
            Some(server) => server.journal.append(row),
            None => self.counters.journal_dropped.add(1),
        }
    }

    /// Returns when everything queued so far is durable.
    pub(crate) async fn flush(&self) -> Result<(), StoreError> {
        let (reply, answer) = oneshot::channel();
        self.queue.push(Command::Flush(reply))?;
        let durable = answer.await.map_err(|_| StoreError::Unavailable)?;
        durable.wait().await.map_err(|_| StoreError::Unavailable)?;
        if let Some(server) = &self.server {
            server.journal.flush().await;
        }
        Ok(())
    }

    pub(crate) async fn journal(
        &self,
        query: JournalQuery,
    ) -> Result<Vec<JournalEntry>, StoreError> {
        match self.journal_reads()? {
            Some(reads) => reads.run(move |on| journal::find(on, &query)).await,
            None => Ok(Vec::new()),
        }
    }

    fn journal_reads(&self) -> Result<Option<Arc<Reads>>, StoreError> {
        let mut reads = self.journal_reads.lock();
        if let Some(reads) = &*reads {
            return Ok(Some(Arc::clone(reads)));
        }
        let path = journal_path(&self.path);
        // No server has used this database yet.
        if size(&path).is_none_or(|bytes| bytes == 0) {
            return Ok(None);
        }
        let pool = Reads::new("journal-read", vec![reader(&path)?])
            .map_err(|_| StoreError::Unavailable)?;
        Ok(Some(Arc::clone(reads.insert(Arc::new(pool)))))
    }
}

/// Counts the frames of the log, for the checkpointer.
fn count_frames(writer: &mut Connection, counters: &Arc<Counters>) -> rusqlite::Result<()> {
    let counters = Arc::clone(counters);
    writer.wal_hook(Some(move |_: &mut Wal, frames| {
        counters.wal_frames.set(u64::try_from(frames).unwrap_or(0));
        Ok(())
    }))
}

/// The writer thread.
pub(super) fn write(
    on: &Connection,
    epoch: crate::records::ids::Epoch,
    limits: Limits,
    counters: Arc<Counters>,
    writer_lock: WriterLock,
    shared: WriterContext,
) {
    let _end = WriterGuard {
        queue: Arc::clone(&shared.queue),
        sync_queue: Arc::clone(&shared.sync_queue),
    };
    match Ledger::new(on, epoch, limits, counters, writer_lock) {
        Ok(ledger) => Writer::new(ledger, shared).run(),
        // Unlikely, because recovery has just prepared the same statements.
        Err(error) => tracing::error!(%error, "the ledger's writer could not start"),
    }
}

/// However the writer ends, nobody must wait for it any longer, and what it committed must still be synced.
struct WriterGuard {
    queue: Arc<CommandQueue>,
    sync_queue: Arc<SyncQueue>,
}

impl Drop for WriterGuard {
    fn drop(&mut self) {
        self.queue.abandon();
        self.sync_queue.close();
    }
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
