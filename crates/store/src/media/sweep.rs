//! Deletes media whose retention time is over.

use std::fs;
use std::io;
use std::path::Path as FilePath;
use std::time::{Duration, SystemTime};

use futures_util::StreamExt as _;
use ledger::UnixMs;
use object_store::{ObjectMeta, ObjectStoreExt as _};
use tokio::time::timeout;

use super::error::MediaError;
use super::head::millis;
use super::name::MediaName;
use super::spool::{self, blocking};
use super::storage::Media;

/// An incoming file without a write for this time belongs to a process that has ended.
const SPOOL_SILENCE_MAX: Duration = Duration::from_secs(60 * 60);
/// The time limit for reading the next page of a list, and for one deletion.
const STEP_MAX: Duration = Duration::from_secs(60);

/// The result of a sweep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    pub deleted: u64,
    /// The files that are still stored.
    pub kept: u64,
    pub kept_bytes: u64,
}

impl Media {
    /// Deletes media whose retention time is over, and the remains of unfinished copies. Other files are not touched.
    /// Any number of nodes may sweep at the same time.
    pub async fn sweep(&self, now: UnixMs) -> Result<Swept, MediaError> {
        let folder = self.spool.to_path_buf();
        blocking(move || sweep_spool(&folder)).await?;
        let kept_for = millis(self.expiry.saturating_add(self.keep_expired));
        let mut swept = Swept::default();
        let mut found = self.objects.list(None);
        while let Some(meta) = timeout(STEP_MAX, found.next())
            .await
            .map_err(|_| MediaError::Timeout)?
        {
            let meta = meta?;
            if MediaName::parse(meta.location.as_ref()).is_none() {
                continue;
            }
            let kept_at = UnixMs::new(meta.last_modified.timestamp_millis());
            if kept_at.plus_ms(kept_for) <= now {
                self.delete(&meta).await?;
                swept.deleted += 1;
            } else {
                swept.kept += 1;
                swept.kept_bytes = swept.kept_bytes.saturating_add(meta.size);
            }
        }
        Ok(swept)
    }

    /// Deletes a medium. Another node may have deleted it first.
    async fn delete(&self, meta: &ObjectMeta) -> Result<(), MediaError> {
        let deleted = timeout(STEP_MAX, self.objects.delete(&meta.location)).await;
        match deleted.map_err(|_| MediaError::Timeout)? {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn sweep_spool(folder: &FilePath) -> io::Result<()> {
    let now = SystemTime::now();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if path
            .extension()
            .is_none_or(|ending| ending != spool::ENDING)
        {
            continue;
        }
        // A file without metadata is already gone and need not be deleted.
        let written = entry.metadata().and_then(|meta| meta.modified());
        let silent = written.is_ok_and(|at| {
            let silence = now.duration_since(at).unwrap_or_default();
            silence > SPOOL_SILENCE_MAX
        });
        if silent {
            let _ = fs::remove_file(path);
        }
    }
    Ok(())
}
