//! One server per database: a lock on a file beside it, held for the life of the process.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

use super::files::{beside, folder};
use crate::error::OpenError;

/// A command that prepares a new database holds the lock for a moment, which must not keep a
/// server from starting.
const WAIT_MAX: Duration = Duration::from_secs(2);
const WAIT_STEP: Duration = Duration::from_millis(20);

/// The lock; dropping it, or the end of the process, gives it back.
#[derive(Debug)]
pub(super) struct ServerLock {
    _file: File,
}

impl ServerLock {
    /// Waits a moment for the lock.
    pub(super) fn take(path: &Path) -> Result<Self, OpenError> {
        let begun = Instant::now();
        loop {
            if let Some(lock) = Self::try_take(path)? {
                return Ok(lock);
            }
            if begun.elapsed() > WAIT_MAX {
                return Err(OpenError::Locked {
                    path: path.to_owned(),
                    lock: beside(path, "-lock"),
                });
            }
            std::thread::sleep(WAIT_STEP);
        }
    }

    /// Takes the lock if nobody has it.
    pub(super) fn try_take(path: &Path) -> Result<Option<Self>, OpenError> {
        let file = open_beside(path, "-lock")?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(OpenError::Io {
                path: beside(path, "-lock"),
                source,
            }),
        }
    }
}

/// Opens a file beside a database, to lock it.
pub(super) fn open_beside(database: &Path, suffix: &str) -> Result<File, OpenError> {
    let path = beside(database, suffix);
    let opened = fs::create_dir_all(folder(database))
        .and_then(|()| OpenOptions::new().create(true).append(true).open(&path));
    opened.map_err(|source| OpenError::Io { path, source })
}
