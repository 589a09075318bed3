//! Who writes has the turn: a lock on a file beside the database.
//!
//! A writer keeps it from one transaction to the next, where the database's own lock is free for a
//! moment: what it decides meanwhile stays true. Programs that do not know of it are noticed when they
//! have written.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

use crate::error::OpenError;
use crate::sqlite::connection::connect::{LOCK_STEP, Patience};
use crate::sqlite::connection::server_lock::open_beside;
use crate::sync::{Instant, sleep};

/// The lock; dropping it, or the end of the process, gives it back.
#[derive(Debug)]
pub(crate) struct Turn {
    file: File,
    held: bool,
    wait: Duration,
    /// Of the connection that writes, for the database's own lock.
    pub(crate) patience: Patience,
}

impl Turn {
    /// The turn at a database; each time it is waited for so long.
    pub(crate) fn at(database: &Path, wait: Duration) -> Result<Self, OpenError> {
        let file = open_beside(database, "-turn")?;
        Ok(Self {
            file,
            held: false,
            wait,
            patience: Patience::default(),
        })
    }

    /// Waits for the turn, unless it is held already.
    pub(crate) fn take(&mut self) -> rusqlite::Result<()> {
        let begun = Instant::now();
        while !self.held {
            match self.file.try_lock() {
                Ok(()) => self.held = true,
                Err(TryLockError::WouldBlock) if begun.elapsed() < self.wait => {
                    sleep(LOCK_STEP);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(refused(
                        rusqlite::ffi::SQLITE_BUSY,
                        "another process has the turn",
                    ));
                }
                Err(TryLockError::Error(error)) => {
                    return Err(refused(
                        rusqlite::ffi::SQLITE_IOERR_LOCK,
                        &error.to_string(),
                    ));
                }
            }
        }
        Ok(())
    }

    pub(crate) fn give_back(&mut self) {
        if self.held
            && let Err(error) = self.file.unlock()
        {
            tracing::error!(%error, "the turn to write could not be given back");
            return;
        }
        self.held = false;
    }
}

fn refused(code: std::ffi::c_int, why: &str) -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(code);
    rusqlite::Error::SqliteFailure(code, Some(why.to_owned()))
}

#[cfg(test)]
#[cfg(not(feature = "schedules"))]
mod tests {
    use crate::sqlite::writer::writer_lock::*;

    #[test]
    fn one_has_it_at_a_time_until_it_is_given_back_or_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("ledger.db");
        let turn = || Turn::at(&database, Duration::from_millis(1)).unwrap();
        let (mut one, mut other) = (turn(), turn());
        one.take().unwrap();
        one.take().unwrap();
        let busy = other.take().unwrap_err();
        assert_eq!(
            busy.sqlite_error_code(),
            Some(rusqlite::ErrorCode::DatabaseBusy)
        );
        one.give_back();
        one.give_back();
        other.take().unwrap();
        assert!(one.take().is_err());
        drop(other);
        one.take().unwrap();
    }
}
