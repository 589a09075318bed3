//! Incoming files, which are written as they arrive and checked before they are stored.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rand::RngExt as _;
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;

use super::error::MediaError;
use crate::disk::require_room;

/// Free disk space is checked once per this many bytes. Even if all concurrent copies write that much between two
/// checks, the disk stays above the ledger's floor.
const DISK_CHECK_INTERVAL_BYTES: u64 = 4 << 20;
/// The extension of incoming files.
pub(super) const ENDING: &str = "part";

/// A file that is being written. It is deleted when dropped.
#[derive(Debug)]
pub struct Spool {
    file: File,
    at: SpoolPath,
    bytes: u64,
    bytes_max: u64,
    disk_floor_bytes: u64,
    /// The size at which free disk space is checked again.
    look_at: u64,
}

/// A complete file. It is deleted when dropped, unless storing it has moved it away.
#[derive(Debug)]
pub struct Spooled {
    pub(super) at: SpoolPath,
    bytes: u64,
}

/// The path of a spooled file, which is deleted when this is dropped.
#[derive(Debug)]
pub(super) struct SpoolPath(PathBuf);

impl Drop for SpoolPath {
    fn drop(&mut self) {
        // If the file was stored in a media folder, it was renamed, and this path no longer exists.
        let _ = fs::remove_file(&self.0);
    }
}

impl SpoolPath {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn name(&self) -> &str {
        let name = self.0.file_name().and_then(|name| name.to_str());
        name.unwrap_or_default()
    }
}

impl Spool {
    pub(super) async fn create(
        folder: &Path,
        bytes_max: u64,
        disk_floor_bytes: u64,
    ) -> Result<Self, MediaError> {
        let path = folder.join(fresh_name());
        let file = File::options()
            .create_new(true)
            .write(true)
            .open(&path)
            .await?;
        Ok(Self {
            file,
            at: SpoolPath(path),
            bytes: 0,
            bytes_max,
            disk_floor_bytes,
            look_at: 0,
        })
    }

    /// Appends a piece. A piece that exceeds the limit is refused as a whole.
    pub async fn write(&mut self, piece: &[u8]) -> Result<(), MediaError> {
        let length = u64::try_from(piece.len()).unwrap_or(u64::MAX);
        let bytes = self.bytes.saturating_add(length);
        if bytes > self.bytes_max {
            return Err(MediaError::TooLarge(self.bytes_max));
        }
        if self.bytes >= self.look_at {
            self.look_at = self.bytes.saturating_add(DISK_CHECK_INTERVAL_BYTES);
            self.check_room().await?;
        }
        self.file.write_all(piece).await?;
        self.bytes = bytes;
        Ok(())
    }

    /// Ends the file and flushes its bytes.
    pub async fn finish(mut self) -> Result<Spooled, MediaError> {
        self.file.flush().await?;
        Ok(Spooled {
            at: self.at,
            bytes: self.bytes,
        })
    }

    async fn check_room(&self) -> Result<(), MediaError> {
        let folder = self.at.path().parent().unwrap_or(Path::new(".")).to_owned();
        let floor = self.disk_floor_bytes;
        Ok(blocking(move || require_room(&folder, floor)).await?)
    }
}

impl Spooled {
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Opens the file for reading.
    pub fn open(&self) -> io::Result<fs::File> {
        fs::File::open(self.at.path())
    }
}

pub(super) fn fresh_name() -> String {
    format!("{:032x}.{ENDING}", rand::rng().random::<u128>())
}

/// Runs disk operations on a thread that may block.
pub(super) async fn blocking<T: Send + 'static>(
    run: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(run)
        .await
        .unwrap_or_else(|error| Err(io::Error::other(error)))
}
