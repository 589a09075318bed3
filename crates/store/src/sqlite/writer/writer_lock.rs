//! The writer lock: a lock on a file beside the database.
//!
//! A writer keeps this lock from one transaction to the next, so that its decisions stay valid although the database's
//! own lock is free for a moment. A program that ignores this lock is detected after it has written.
//!
//! A process that waits for the writer lock takes a shared lock on a second file. So a server under load can keep the
//! writer lock until another process wants it (`batch_policy`).

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

use crate::error::OpenError;
use crate::sqlite::connection::connect::{BusyWait, LOCK_STEP};
use crate::sqlite::connection::server_lock::open_beside;
use crate::sync::{Instant, sleep};

/// The writer lock. It is released when dropped, or when the process ends.
#[derive(Debug)]
pub(crate) struct WriterLock {
    file: File,
    /// Locked by processes that wait for the writer lock. `None` if this process cannot open the file.
    waiting: Option<File>,
    held: bool,
    wait: Duration,
    /// Whether the writing connection waits for the database's own lock.
    pub(crate) busy_wait: BusyWait,
}

impl WriterLock {
    /// Opens the writer lock of a database. `wait` limits each attempt to acquire it.
    pub(crate) fn open(database: &Path, wait: Duration) -> Result<Self, OpenError> {
        let file = open_beside(database, "-turn")?;
        Ok(Self {
            file,
            waiting: open_beside(database, "-waiting")
                .inspect_err(|error| tracing::warn!(%error, "other processes will not see that this one waits to write"))
                .ok(),
            held: false,
            wait,
            busy_wait: BusyWait::default(),
        })
    }

    /// Waits for the lock, unless it is already held.
    pub(crate) fn acquire(&mut self) -> rusqlite::Result<()> {
        let mut says_so = false;
        let acquired = self.poll(&mut says_so);
        if says_so
            && let Some(waiting) = &self.waiting
            && let Err(error) = waiting.unlock()
        {
            tracing::error!(%error, "the lock of a process that waits to write could not be released");
        }
        acquired
    }

    /// Whether another process waits for the lock. Also true if this is unknown.
    pub(crate) fn is_wanted(&self) -> bool {
        let Some(waiting) = &self.waiting else {
            return true;
        };
        waiting.try_lock().is_err() || waiting.unlock().is_err()
    }

    /// Polls the lock until the time limit. Sets `says_so` once other processes can see that this process waits.
    fn poll(&mut self, says_so: &mut bool) -> rusqlite::Result<()> {
        let begun = Instant::now();
        while !self.held {
            match self.file.try_lock() {
                Ok(()) => self.held = true,
                Err(TryLockError::WouldBlock) if begun.elapsed() < self.wait => {
                    let waiting = self.waiting.as_ref();
                    *says_so = *says_so || waiting.is_some_and(|it| it.try_lock_shared().is_ok());
                    sleep(LOCK_STEP);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(lock_error(
                        rusqlite::ffi::SQLITE_BUSY,
                        "another process holds the writer lock",
                    ));
                }
                Err(TryLockError::Error(error)) => {
                    return Err(lock_error(
                        rusqlite::ffi::SQLITE_IOERR_LOCK,
                        &error.to_string(),
                    ));
                }
            }
        }
        Ok(())
    }

    pub(crate) fn release(&mut self) {
        if self.held
            && let Err(error) = self.file.unlock()
        {
            tracing::error!(%error, "the writer lock could not be released");
            return;
        }
        self.held = false;
    }
}

fn lock_error(code: std::ffi::c_int, why: &str) -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(code);
    rusqlite::Error::SqliteFailure(code, Some(why.to_owned()))
}

#[cfg(test)]
#[cfg(not(feature = "schedules"))]
mod tests {
    use super::*;

    #[test]
    fn one_has_it_at_a_time_until_it_is_given_back_or_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("ledger.db");
        let writer_lock = || WriterLock::open(&database, Duration::from_millis(1)).unwrap();
        let (mut one, mut other) = (writer_lock(), writer_lock());
        one.acquire().unwrap();
        one.acquire().unwrap();
        let busy = other.acquire().unwrap_err();
        assert_eq!(
            busy.sqlite_error_code(),
            Some(rusqlite::ErrorCode::DatabaseBusy)
        );
        one.release();
        one.release();
        other.acquire().unwrap();
        assert!(one.acquire().is_err());
        drop(other);
        one.acquire().unwrap();
    }

    #[test]
    fn a_process_that_waits_is_noticed_until_it_has_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("ledger.db");
        let long = Duration::from_secs(60);
        let mut server = WriterLock::open(&database, long).unwrap();
        server.acquire().unwrap();
        assert!(!server.is_wanted());
        let mut command = WriterLock::open(&database, long).unwrap();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| command.acquire());
            let begun = Instant::now();
            while !server.is_wanted() {
                assert!(begun.elapsed() < long, "nobody says that it waits");
                sleep(LOCK_STEP);
            }
            server.release();
            waits.join().unwrap().unwrap();
        });
        assert!(!server.is_wanted());
        // A process that gives up no longer counts as waiting.
        let mut impatient = WriterLock::open(&database, Duration::from_millis(1)).unwrap();
        assert!(impatient.acquire().is_err());
        assert!(!server.is_wanted());
    }
}
