//! Ensures that only one server uses a database: a lock on a file beside it, held until the process ends.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::Path;
use std::time::{Duration, Instant};

use super::files::{beside, folder};
use crate::error::OpenError;

/// How long a server waits for a command that briefly holds the lock to create or migrate the database.
const WAIT_MAX: Duration = Duration::from_secs(2);
const WAIT_STEP: Duration = Duration::from_millis(20);

/// The server lock. It is released when dropped, or when the process ends.
#[derive(Debug)]
pub(crate) struct ServerLock {
    _file: File,
}

impl ServerLock {
    /// Takes the lock, after a short wait if necessary.
    pub(crate) fn take(path: &Path) -> Result<Self, OpenError> {
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

    pub(crate) fn try_take(path: &Path) -> Result<Option<Self>, OpenError> {
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

/// Opens a lock file beside a database. Every user who may use the database may also use the lock file, regardless of
/// who created it.
pub(crate) fn open_beside(database: &Path, suffix: &str) -> Result<File, OpenError> {
    let path = beside(database, suffix);
    let opened = fs::create_dir_all(folder(database)).and_then(|()| open_or_make(&path, database));
    opened.map_err(|source| OpenError::Io { path, source })
}

fn open_or_make(path: &Path, database: &Path) -> io::Result<File> {
    match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        opened => return opened,
    }
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    if let Ok(like) = fs::metadata(database) {
        file.set_permissions(like.permissions())?;
        // Only root can change the owner of a file, and only files that root creates need another owner.
        let _: io::Result<()> = fchown(&file, Some(like.uid()), Some(like.gid()));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_to_lock_is_open_to_whoever_may_use_the_database() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("ledger.db");
        let mode = |suffix| {
            let made = fs::metadata(beside(&database, suffix)).unwrap();
            made.permissions().mode() & 0o777
        };
        open_beside(&database, "-early").unwrap();
        fs::write(&database, "").unwrap();
        fs::set_permissions(&database, fs::Permissions::from_mode(0o660)).unwrap();
        open_beside(&database, "-turn").unwrap();
        assert_eq!(mode("-turn"), 0o660);
        // An existing file is not changed, and need not be writable.
        let read_only = fs::Permissions::from_mode(0o444);
        fs::set_permissions(beside(&database, "-turn"), read_only).unwrap();
        open_beside(&database, "-turn").unwrap().try_lock().unwrap();
        assert_eq!(mode("-turn"), 0o444);
    }
}
