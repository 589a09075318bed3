//! Opens the database for a server, or for a command while a server may be running.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;

use super::connect::{make_writer, open_checked, open_error, wait_with};
use super::files::{beside, size, sync_folder};
use super::server_lock::ServerLock;
use crate::clock;
use crate::error::OpenError;
use crate::records::ids::Epoch;
use crate::records::recovery::Recovery;
use crate::settings::Settings;
use crate::sqlite::recovery::{begin_epoch, close_orphans};
use crate::sqlite::schema::migrations::{Schema, SchemaAge};
use crate::sqlite::tasks::transactions::void_claims;
use crate::sqlite::writer::ledger::Ledger;
use crate::sqlite::writer::writer_lock::WriterLock;
use crate::stats::Counters;

/// The maximum time of one wait for the writer lock or the database's lock. It is short, so that the writer notices
/// when the store is being closed. The writer retries until its commands have waited too long.
const WRITER_WAIT: Duration = Duration::from_millis(100);

/// A database that is ready for its writer.
pub(crate) struct Opened {
    pub(crate) writer: Connection,
    pub(crate) writer_lock: WriterLock,
    /// The file of the write-ahead log, for syncing it.
    pub(crate) log: File,
    pub(crate) epoch: Epoch,
}

/// Opens the database for a server that holds the server lock. Migrates it, begins a new epoch, and closes the holds of
/// earlier epochs.
pub(crate) fn for_server(
    path: &Path,
    settings: &Settings,
    counters: &Arc<Counters>,
) -> Result<(Opened, Recovery), OpenError> {
    let writer = prepared(path, Schema::Ledger, settings.lock_wait_max)?;
    let sql = |error| open_error(path, error);
    let now = clock::now();
    let epoch = begin_epoch(&writer, now).map_err(sql)?;
    void_claims(&writer, epoch, now).map_err(sql)?;
    let mut ledger = Ledger::new(
        &writer,
        epoch,
        settings.book_limits(),
        Arc::clone(counters),
        WriterLock::open(path, settings.lock_wait_max)?,
    )
    .map_err(sql)?;
    let recovery = close_orphans(&mut ledger, epoch, now).map_err(sql)?;
    drop(ledger);
    let log = open_log(path)?;
    // The recovery must be durable before calls are admitted on its result.
    log.sync_all().map_err(|source| OpenError::Io {
        path: beside(path, "-wal"),
        source,
    })?;
    let (writer, writer_lock) = with_writer_lock(writer, path)?;
    let opened = Opened {
        writer,
        writer_lock,
        log,
        epoch,
    };
    Ok((opened, recovery))
}

/// Opens the database for a command, without recovery. Migrates the database only if no server is running.
pub(crate) fn for_command(path: &Path, settings: &Settings) -> Result<Opened, OpenError> {
    if !is_current(path, Schema::Ledger)? {
        match ServerLock::try_take(path)? {
            Some(_lock) => drop(prepared(path, Schema::Ledger, settings.lock_wait_max)?),
            None => wait_for_schema(path, settings.lock_wait_max)?,
        }
    }
    let mut writer = super::connect::open(path, rusqlite::OpenFlags::empty())
        .map_err(|error| open_error(path, error))?;
    make_writer(&mut writer, settings.lock_wait_max).map_err(|error| open_error(path, error))?;
    // The log file exists after the first read.
    Schema::Ledger.age(&writer, path)?;
    let (writer, writer_lock) = with_writer_lock(writer, path)?;
    Ok(Opened {
        writer,
        writer_lock,
        log: open_log(path)?,
        epoch: Epoch::new(0),
    })
}

/// Opens one of the two files and migrates it.
pub(crate) fn prepared(
    path: &Path,
    schema: Schema,
    lock_wait: Duration,
) -> Result<Connection, OpenError> {
    let mut connection = open_checked(path)?;
    // Refuses a newer file before anything in it is changed.
    schema.age(&connection, path)?;
    make_writer(&mut connection, lock_wait).map_err(|error| open_error(path, error))?;
    schema.migrate(&mut connection, path)?;
    sync_folder(path).map_err(|source| OpenError::Io {
        path: path.to_owned(),
        source,
    })?;
    Ok(connection)
}

/// The path of the journal's file. It does not end in `-journal`, which is the name of `SQLite`'s own rollback journal.
pub(crate) fn journal_path(path: &Path) -> PathBuf {
    beside(path, "-calls")
}

fn is_current(path: &Path, schema: Schema) -> Result<bool, OpenError> {
    if size(path).is_none_or(|bytes| bytes == 0) {
        return Ok(false);
    }
    let connection = super::connect::reader(path).map_err(|error| open_error(path, error))?;
    Ok(schema.age(&connection, path)? == SchemaAge::Same)
}

/// Waits until the schema is current, because a server that is just starting may still be migrating it.
fn wait_for_schema(path: &Path, wait: Duration) -> Result<(), OpenError> {
    let begun = std::time::Instant::now();
    while !is_current(path, Schema::Ledger)? {
        if begun.elapsed() > wait {
            let connection =
                super::connect::reader(path).map_err(|error| open_error(path, error))?;
            return match Schema::Ledger.age(&connection, path)? {
                SchemaAge::Same => Ok(()),
                SchemaAge::Older { found, known } => Err(OpenError::OlderSchema {
                    place: path.display().to_string(),
                    found,
                    known,
                }),
            };
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn open_log(path: &Path) -> Result<File, OpenError> {
    // SQLite deletes the log only when its last connection is closed, and ours stays open. So every later batch is
    // written to this file, even after the log has restarted.
    let log = beside(path, "-wal");
    let file = File::open(&log).map_err(|source| OpenError::Io { path: log, source })?;
    sync_folder(path).map_err(|source| OpenError::Io {
        path: path.to_owned(),
        source,
    })?;
    Ok(file)
}

/// Prepares a connection that waits only briefly for locks. The writer lock can switch these waits off.
fn with_writer_lock(
    mut writer: Connection,
    path: &Path,
) -> Result<(Connection, WriterLock), OpenError> {
    let writer_lock = WriterLock::open(path, WRITER_WAIT)?;
    wait_with(&mut writer, WRITER_WAIT, writer_lock.busy_wait.clone())
        .map_err(|error| open_error(path, error))?;
    Ok((writer, writer_lock))
}
