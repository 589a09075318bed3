//! Room on the disk: the floor below which nobody is admitted, and a reserve for those who were.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::sqlite::connection::files::beside;

/// Room for the settlements of every call that can be in flight.
pub(crate) const BALLAST_BYTES: u64 = 16 * 1024 * 1024;
const BLOCK_BYTES: usize = 1024 * 1024;

/// A file that is only there to be deleted: when the disk is full, the closes of admitted calls
/// find room in its place.
#[derive(Debug)]
pub(crate) struct Ballast {
    path: Option<PathBuf>,
}

impl Ballast {
    /// The ballast of a server's database.
    pub(crate) fn of(path: &Path) -> Self {
        Self {
            path: Some(beside(path, "-ballast")),
        }
    }

    /// No ballast, for a command that comes and goes.
    pub(crate) fn none() -> Self {
        Self { path: None }
    }

    /// Makes the file, if it is not there.
    pub(crate) fn create(&self) -> io::Result<()> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        if fs::metadata(path).is_ok_and(|found| found.len() >= BALLAST_BYTES) {
            return Ok(());
        }
        let mut file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .open(path)?;
        // Written, not only extended: a hole takes no room.
        let block = vec![0; BLOCK_BYTES];
        for _ in 0..BALLAST_BYTES / BLOCK_BYTES as u64 {
            file.write_all(&block)?;
        }
        file.sync_all()
    }

    /// Gives its room to the ledger.
    pub(crate) fn free(&self) {
        if let Some(path) = &self.path
            && fs::remove_file(path).is_ok()
        {
            tracing::warn!("the disk is full: the ballast file was given up to book what is open");
        }
    }
}
