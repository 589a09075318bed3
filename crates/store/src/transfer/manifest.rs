//! Reads and writes the manifest of a backup, which lists its files.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::TransferError;
use super::files::digest_of;

/// The version of the backup format that this program writes and reads.
pub(super) const FORMAT: u32 = 1;
// The names of the files and the folder in a backup.
pub(super) const MANIFEST: &str = "backup.json";
pub(super) const DATABASE: &str = "tollgate.db";
pub(super) const JOURNAL: &str = "tollgate.db-calls";
pub(super) const MEDIA: &str = "media";
/// The file that marks a folder as a backup in progress.
pub(super) const IN_PROGRESS: &str = "backup-in-progress";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) format: u32,
    /// The program that wrote the backup.
    pub(super) program: String,
    pub(super) made_at: i64,
    /// The database from which the backup was copied.
    pub(super) store: String,
    pub(super) wallets: u64,
    pub(super) keys: u64,
    pub(super) entries: u64,
    /// Whether `ledger verify` found no difference.
    pub(super) is_clean: bool,
    /// Whether a media folder was copied. Media in a bucket are not copied.
    pub(super) has_media: bool,
    pub(super) files: Vec<StoredFile>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredFile {
    pub(super) path: String,
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

impl Manifest {
    pub(super) fn write(&self, path: &Path) -> Result<(), TransferError> {
        let text = serde_json::to_vec_pretty(self).unwrap_or_default();
        let written = File::create_new(path).and_then(|mut file| {
            file.write_all(&text)?;
            file.write_all(b"\n")
        });
        written.map_err(TransferError::io(path))
    }

    pub(super) fn read(folder: &Path) -> Result<Self, TransferError> {
        let damaged = |reason: String| TransferError::NoBackup {
            path: folder.to_owned(),
            reason,
        };
        let text = fs::read(folder.join(MANIFEST))
            .map_err(|error| damaged(format!("{MANIFEST} cannot be read: {error}")))?;
        let manifest: Self = serde_json::from_slice(&text)
            .map_err(|error| damaged(format!("{MANIFEST} cannot be read: {error}")))?;
        if manifest.format != FORMAT {
            let format = manifest.format;
            return Err(damaged(format!(
                "its format is {format}, and this program knows {FORMAT}"
            )));
        }
        Ok(manifest)
    }

    /// Reads the manifest of a folder, and checks that all files are unchanged.
    pub(super) fn read_checked(folder: &Path) -> Result<Self, TransferError> {
        let damaged = |reason: String| TransferError::NoBackup {
            path: folder.to_owned(),
            reason,
        };
        if folder.join(IN_PROGRESS).exists() {
            return Err(damaged("it was stopped while it was being made".to_owned()));
        }
        let manifest = Self::read(folder)?;
        let databases = [DATABASE, JOURNAL];
        for name in databases {
            if !manifest.files.iter().any(|file| file.path == name) {
                return Err(damaged(format!("{name} is missing")));
            }
        }
        for file in &manifest.files {
            let is_ours = databases.contains(&&*file.path)
                || file
                    .path
                    .strip_prefix("media/")
                    .is_some_and(super::media_files::is_name);
            if !is_ours {
                return Err(damaged(format!("{} is none of our files", file.path)));
            }
            let found = digest_of(&folder.join(&file.path));
            let found = found.map_err(|error| damaged(error.to_string()))?;
            if found != (file.bytes, file.sha256.clone()) {
                return Err(damaged(format!("{} is damaged", file.path)));
            }
        }
        Ok(manifest)
    }

    /// The names of its media files.
    pub(super) fn media(&self) -> impl Iterator<Item = &str> {
        let files = self.files.iter();
        files.filter_map(|file| file.path.strip_prefix("media/"))
    }
}
