//! Reserves disk space for the settlement of calls that were admitted before the disk became full.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::sqlite::connection::files::beside;

/// The size of the reserve: enough for the settlements of all calls that can be in flight.
pub(crate) const RESERVE_BYTES: u64 = 16 * 1024 * 1024;
const BLOCK_BYTES: usize = 1024 * 1024;

/// A file that is deleted when the disk is full. The space that it frees is used to close the calls that were admitted.
#[derive(Debug)]
pub(crate) struct DiskReserve {
    path: Option<PathBuf>,
}

impl DiskReserve {
    pub(crate) fn of(path: &Path) -> Self {
        Self {
            path: Some(beside(path, "-ballast")),
        }
    }

    /// Reserves nothing. Commands use it, and so do servers without a disk floor.
    pub(crate) fn none() -> Self {
        Self { path: None }
    }

    /// Creates the file if it does not exist.
    pub(crate) fn create(&self) -> io::Result<()> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        if fs::metadata(path).is_ok_and(|found| found.len() >= RESERVE_BYTES) {
            return Ok(());
        }
        let mut file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .open(path)?;
        // The blocks are written, because a sparse file does not reserve space.
        let block = vec![0; BLOCK_BYTES];
        for _ in 0..RESERVE_BYTES / BLOCK_BYTES as u64 {
            file.write_all(&block)?;
        }
        file.sync_all()
    }

    /// Deletes the file, so that the ledger can use its space.
    pub(crate) fn free(&self) {
        if let Some(path) = &self.path
            && fs::remove_file(path).is_ok()
        {
            tracing::warn!(
                "the disk is full: the reserve of disk space was given up to book what is open"
            );
        }
    }
}
