//! Stores callers' uploads in files, because the uploads may be too large for memory.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

use super::error::MediaError;
use super::spool::blocking;
use super::storage::Media;
use crate::disk::require_room;

/// A file without a name, which the operating system removes when it is closed. It is on the same disk as incoming
/// media, so that the same check keeps disk space for the ledger.
#[derive(Debug)]
pub struct Upload {
    file: File,
    bytes: u64,
    folder: Arc<PathBuf>,
    disk_floor_bytes: u64,
}

impl Media {
    /// Creates a file for an upload, if there is enough disk space.
    pub async fn upload(&self) -> Result<Upload, MediaError> {
        let (folder, disk_floor_bytes) = (Arc::clone(&self.spool), self.disk_floor_bytes);
        let begun = blocking(move || {
            require_room(&folder, disk_floor_bytes)?;
            Ok(Upload {
                file: tempfile::tempfile_in(&*folder)?,
                bytes: 0,
                folder,
                disk_floor_bytes,
            })
        });
        Ok(begun.await?)
    }
}

impl Upload {
    /// Appends pieces. Checks the disk space each time, because the number of uploads is not limited.
    pub async fn write(mut self, pieces: Vec<Bytes>) -> Result<Self, MediaError> {
        let written = blocking(move || {
            require_room(&self.folder, self.disk_floor_bytes)?;
            for piece in pieces {
                self.file.write_all(&piece)?;
                let length = u64::try_from(piece.len()).unwrap_or(u64::MAX);
                self.bytes = self.bytes.saturating_add(length);
            }
            Ok(self)
        });
        Ok(written.await?)
    }

    /// The number of bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the file, for reading.
    pub fn into_file(self) -> File {
        self.file
    }
}
