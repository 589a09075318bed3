//! Opens connections to the database, and checks a file before it is used.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use super::files::size;
use crate::error::OpenError;

/// The application id in the header of our files: `Toll` in ASCII.
pub(crate) const APPLICATION_ID: i32 = 0x546f_6c6c;
/// Files up to this size are checked completely at startup. A start must not become slower with every call ever made,
/// so in larger files only the small tables that admission needs are checked. `tollgate ledger verify` reads the rest.
const CHECKED_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Pages are small, because a batch changes a few bytes in about six pages and the log stores whole pages. In a
/// measurement, 2,048 bytes instead of 4,096 saved a single call a sixth of its time and cost large batches nothing.
pub(crate) const PAGE_BYTES: u32 = 2_048;
/// The disk space that the log keeps when it restarts. Overwriting allocated space is faster than growing the file.
const LOG_KEPT_BYTES: i64 = 64 * 1024 * 1024;
/// The interval at which a waiting writer polls the lock.
pub(crate) const LOCK_STEP: Duration = Duration::from_micros(250);

/// Page cache of each kind of connection, in KiB. It is allocated on use.
pub(crate) const WRITER_CACHE_KIB: i32 = 8_192;
pub(crate) const READER_CACHE_KIB: i32 = 1_024;
pub(crate) const SEARCHER_CACHE_KIB: i32 = 8_192;

/// Begins a transaction that writes, and waits while another process writes. A transaction that reads first could not
/// begin to write after another process has written, and its changes would be lost.
pub(crate) fn begin_write(on: &Connection) -> rusqlite::Result<Transaction<'_>> {
    Transaction::new_unchecked(on, TransactionBehavior::Immediate)
}

/// Opens a new or existing file. Refuses a file that is damaged or belongs to another program, and does not change it.
pub(crate) fn open_checked(path: &Path) -> Result<Connection, OpenError> {
    let fresh = size(path).is_none_or(|bytes| bytes == 0);
    let connection =
        open(path, OpenFlags::SQLITE_OPEN_CREATE).map_err(|error| open_error(path, error))?;
    if fresh {
        connection
            .pragma_update(None, "page_size", PAGE_BYTES)
            .map_err(|error| open_error(path, error))?;
        connection
            .pragma_update(None, "application_id", APPLICATION_ID)
            .map_err(|error| open_error(path, error))?;
        return Ok(connection);
    }
    // SQLite would copy the log into the file when its last connection is closed, but a damaged file must not be
    // changed.
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .map_err(|error| open_error(path, error))?;
    check(&connection, path)?;
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)
        .map_err(|error| open_error(path, error))?;
    Ok(connection)
}

fn check(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let refused = |error| open_error(path, error);
    let id: i32 = connection
        .pragma_query_value(None, "application_id", |row| row.get(0))
        .map_err(refused)?;
    let tables = "SELECT count(*) FROM sqlite_schema";
    let tables: i64 = connection
        .query_row(tables, [], |row| row.get(0))
        .map_err(refused)?;
    if id != APPLICATION_ID && (id != 0 || tables > 0) {
        return Err(OpenError::Foreign {
            path: path.to_owned(),
        });
    }
    if id == 0 {
        connection
            .pragma_update(None, "application_id", APPLICATION_ID)
            .map_err(refused)?;
    }
    let whole = size(path).unwrap_or(0) <= CHECKED_BYTES_MAX;
    let parts: &[Option<&str>] = if whole {
        &[None]
    } else {
        &[Some("wallets"), Some("holds"), Some("epochs")]
    };
    for part in parts {
        if let Some(table) = part
            && !connection.table_exists(None, *table).map_err(refused)?
        {
            continue;
        }
        let pragma = part.map_or("PRAGMA quick_check(1)".to_owned(), |table| {
            format!("PRAGMA quick_check({table})")
        });
        let found: String = connection
            .query_row(&pragma, [], |row| row.get(0))
            .map_err(refused)?;
        if found != "ok" {
            return Err(OpenError::Corrupt {
                path: path.to_owned(),
                reason: found,
            });
        }
    }
    Ok(())
}

/// Configures a connection that writes. Our own threads sync and checkpoint its write-ahead log.
pub(crate) fn make_writer(
    connection: &mut Connection,
    lock_wait: Duration,
) -> rusqlite::Result<()> {
    wait_for_lock(connection, lock_wait)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    // A log that has grown beyond the limit is truncated when it restarts.
    connection.pragma_update(None, "journal_size_limit", LOG_KEPT_BYTES)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    Ok(())
}

pub(crate) fn reader(path: &Path) -> rusqlite::Result<Connection> {
    let connection = open(path, OpenFlags::empty())?;
    connection.pragma_update(None, "query_only", true)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
    Ok(connection)
}

/// Opens a connection to a file that was checked before.
pub(crate) fn open(path: &Path, more: OpenFlags) -> rusqlite::Result<Connection> {
    // Each connection is used by one thread, so SQLite need not lock it.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags | more)?;
    // Keeps the query plan of a statement. Otherwise SQLite may plan it again for new bound values.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

/// Makes a connection wait for the lock. It polls often, because under load the lock is free only for short moments
/// (`batch_policy.rs`).
pub(crate) fn wait_for_lock(connection: &mut Connection, wait: Duration) -> rusqlite::Result<()> {
    wait_with(connection, wait, BusyWait::default())
}

/// Like [`wait_for_lock`], but does not wait while `busy_wait` is switched off.
pub(crate) fn wait_with(
    connection: &mut Connection,
    wait: Duration,
    busy_wait: BusyWait,
) -> rusqlite::Result<()> {
    let tries = i32::try_from(wait.as_micros() / LOCK_STEP.as_micros()).unwrap_or(i32::MAX);
    connection.busy_handler(Some(move |tried| {
        if busy_wait.has_ended() {
            return false;
        }
        std::thread::sleep(LOCK_STEP);
        tried < tries
    }))
}

/// A switch that tells a connection whether to wait for the lock.
#[derive(Debug, Clone, Default)]
pub(crate) struct BusyWait {
    ended: Arc<AtomicBool>,
}

impl BusyWait {
    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Runs a function that must not wait for the lock.
    pub(crate) fn without<T>(&self, run: impl FnOnce() -> T) -> T {
        self.ended.store(true, Ordering::Relaxed);
        let done = run();
        self.ended.store(false, Ordering::Relaxed);
        done
    }
}

pub(crate) fn open_error(path: &Path, error: rusqlite::Error) -> OpenError {
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => OpenError::Corrupt {
            path: path.to_owned(),
            reason: error.to_string(),
        },
        _ => OpenError::Database {
            place: path.display().to_string(),
            source: Box::new(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::connection::open::prepared;
    use crate::sqlite::schema::migrations::Schema;

    #[test]
    fn a_large_file_of_either_kind_can_be_opened_again() {
        for schema in [Schema::Ledger, Schema::Journal] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("store");
            drop(prepared(&path, schema, Duration::ZERO).unwrap());
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            // The added pages belong to no table and take no disk space.
            file.set_len(CHECKED_BYTES_MAX + u64::from(PAGE_BYTES))
                .unwrap();
            prepared(&path, schema, Duration::ZERO).unwrap();
        }
    }
}
