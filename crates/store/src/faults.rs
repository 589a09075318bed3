//! Faults that tests inject into an embedded store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::Connection;
use rusqlite::hooks::Wal;

use crate::backend::Backend;
use crate::error::OpenError;
use crate::records::recovery::Recovery;
use crate::settings::{Location, Settings};
use crate::sqlite::Sqlite;
use crate::store::Store;
use crate::sync::Mutex;

/// Controls that make the commits of a store fail or wait.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    /// This many commits fail and write nothing.
    pub failing_commits: Arc<AtomicU32>,
    /// This many commits succeed but are reported as failed.
    pub misreported_commits: Arc<AtomicU32>,
    /// Commits wait while this is locked.
    pub commits_wait: Arc<Mutex<()>>,
    /// No batch is written while this is locked. Its value counts the checkpoints.
    pub checkpoint_lock: Arc<Mutex<u64>>,
}

impl Faults {
    pub(crate) fn install(&self, writer: &mut Connection) -> rusqlite::Result<()> {
        let (failing, misreported) = (
            Arc::clone(&self.failing_commits),
            Arc::clone(&self.misreported_commits),
        );
        let wait = Arc::clone(&self.commits_wait);
        writer.commit_hook(Some(move || {
            drop(wait.lock());
            take_one(&failing)
        }))?;
        writer.wal_hook(Some(move |_: &mut Wal, _| {
            if take_one(&misreported) {
                let error = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR);
                return Err(rusqlite::Error::SqliteFailure(error, None));
            }
            Ok(())
        }))
    }
}

impl Store {
    /// Opens an embedded store with faults.
    ///
    /// # Panics
    /// If the settings name a server.
    pub fn open_with_faults(
        settings: &Settings,
        faults: &Faults,
    ) -> Result<(Self, Recovery), OpenError> {
        let Location::File(path) = &settings.location else {
            panic!("faults are injected into embedded stores only");
        };
        let checkpoint_lock = Arc::clone(&faults.checkpoint_lock);
        let install = |writer: &mut Connection| faults.install(writer);
        let (sqlite, recovery) = Sqlite::open_with(path, settings, checkpoint_lock, install)?;
        let backend = Backend::Sqlite(Arc::new(sqlite));
        Ok((backend.into(), recovery))
    }
}

fn take_one(from: &AtomicU32) -> bool {
    from.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
        left.checked_sub(1)
    })
    .is_ok()
}
