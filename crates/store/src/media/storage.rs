//! The media storage: stores, reads and probes media.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use ledger::UnixMs;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt as _};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::body::MediaBody;
use super::bucket;
use super::error::{MediaError, MediaOpenError};
use super::head::MediaHead;
use super::name::MediaName;
use super::settings::{MediaPlace, MediaSettings};
use super::spool::{self, Spool, Spooled, blocking};

/// The folder for incoming files in a media folder.
const INCOMING: &str = "incoming";
/// The time limit from a request to its first byte.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(15);
/// The time limit for storing one file.
const KEEP_MAX: Duration = Duration::from_secs(15 * 60);
/// The maximum number of concurrent uploads. Each holds one part in memory.
const UPLOADS_MAX: usize = 8;

/// The media storage. It is cheap to clone.
#[derive(Debug, Clone)]
pub struct Media {
    pub(super) objects: Arc<dyn ObjectStore>,
    pub(super) spool: Arc<PathBuf>,
    store_method: StoreMethod,
    pub(super) expiry: Duration,
    pub(super) keep_expired: Duration,
    pub(super) disk_floor_bytes: u64,
}

/// How a file gets from the spool to the storage.
#[derive(Debug, Clone)]
enum StoreMethod {
    /// The file is renamed, because the spool is a folder of the storage itself.
    Rename,
    /// The file is uploaded over the network.
    Upload(Arc<Semaphore>),
}

impl Media {
    /// Opens the storage. Missing folders are created, and must be writable. A bucket need not be reachable yet.
    pub fn open(settings: &MediaSettings) -> Result<Self, MediaOpenError> {
        let (objects, spool, store_method): (Arc<dyn ObjectStore>, _, _) = match &settings.place {
            MediaPlace::Folder(folder) => {
                let spool = folder.join(INCOMING);
                prepare(&spool)?;
                let local = LocalFileSystem::new_with_prefix(folder);
                let local = local.map_err(|error| MediaOpenError::Folder {
                    path: folder.clone(),
                    source: io::Error::other(error),
                })?;
                (Arc::new(local.with_fsync(true)), spool, StoreMethod::Rename)
            }
            MediaPlace::Bucket(bucket) => {
                prepare(&bucket.spool)?;
                let uploads = Arc::new(Semaphore::new(UPLOADS_MAX));
                let objects = bucket::open(bucket)?;
                (objects, bucket.spool.clone(), StoreMethod::Upload(uploads))
            }
        };
        Ok(Self {
            objects,
            spool: Arc::new(spool),
            store_method,
            expiry: settings.expiry,
            keep_expired: settings.keep_expired,
            disk_floor_bytes: settings.disk_floor_bytes,
        })
    }

    /// Creates a file to write to, of at most `bytes_max` bytes.
    pub async fn spool(&self, bytes_max: u64) -> Result<Spool, MediaError> {
        Spool::create(&self.spool, bytes_max, self.disk_floor_bytes).await
    }

    /// Stores a file under a name, all of it or nothing, and replaces an earlier file of that name. When this has
    /// returned, the file survives a power cut.
    pub async fn keep(&self, file: Spooled, name: MediaName) -> Result<(), MediaError> {
        let to = path_of(name);
        let kept = async {
            match &self.store_method {
                StoreMethod::Rename => {
                    let synced = file.open()?;
                    blocking(move || synced.sync_all()).await?;
                    let from = Path::from_iter([INCOMING, file.at.name()]);
                    Ok(self.objects.rename(&from, &to).await?)
                }
                StoreMethod::Upload(uploads) => {
                    // The semaphore is never closed.
                    let _turn = uploads.acquire().await;
                    bucket::upload(&*self.objects, &file, &to, name.kind).await
                }
            }
        };
        timeout(KEEP_MAX, kept)
            .await
            .unwrap_or(Err(MediaError::Timeout))
    }

    /// Whether the storage answers. For a bucket, lists its objects, which needs the same rights as our sweeps and
    /// fails if the bucket does not exist. The offset keeps the list empty.
    pub async fn probe(&self) -> Result<(), MediaError> {
        match &self.store_method {
            StoreMethod::Rename => {
                tokio::fs::metadata(&*self.spool).await?;
            }
            StoreMethod::Upload(_) => {
                let behind_all = Path::from("~");
                let mut list = self.objects.list_with_offset(None, &behind_all);
                let answered = timeout(ANSWER_MAX, list.next()).await;
                answered.map_err(|_| MediaError::Timeout)?.transpose()?;
            }
        }
        Ok(())
    }

    /// The metadata of a medium. `None` if it is missing or has expired; callers cannot tell the two apart.
    pub async fn head(
        &self,
        name: MediaName,
        now: UnixMs,
    ) -> Result<Option<MediaHead>, MediaError> {
        let path = path_of(name);
        let asked = timeout(ANSWER_MAX, self.objects.head(&path)).await;
        match asked.map_err(|_| MediaError::Timeout)? {
            Ok(meta) => {
                Ok(Some(MediaHead::of(&meta, self.expiry)).filter(|head| now < head.expires_at))
            }
            Err(object_store::Error::NotFound { .. }) => self.missing().await,
            Err(error) => Err(error.into()),
        }
    }

    /// The whole medium, if it exists and has not expired.
    pub async fn read(
        &self,
        name: MediaName,
        now: UnixMs,
    ) -> Result<Option<(MediaHead, MediaBody)>, MediaError> {
        let found = self.get(name, GetOptions::default()).await?;
        Ok(found.filter(|(head, _)| now < head.expires_at))
    }

    /// A range of a medium whose metadata is known. `None` if the medium has changed since then.
    pub async fn read_range(
        &self,
        name: MediaName,
        head: &MediaHead,
        range: Range<u64>,
    ) -> Result<Option<MediaBody>, MediaError> {
        let options = GetOptions {
            range: Some(GetRange::Bounded(range)),
            if_match: head.mark.clone(),
            ..GetOptions::default()
        };
        let found = self.get(name, options).await?;
        Ok(found.map(|(_, body)| body))
    }

    async fn get(
        &self,
        name: MediaName,
        options: GetOptions,
    ) -> Result<Option<(MediaHead, MediaBody)>, MediaError> {
        let path = path_of(name);
        let asked = timeout(ANSWER_MAX, self.objects.get_opts(&path, options)).await;
        match asked.map_err(|_| MediaError::Timeout)? {
            Ok(result) => {
                let head = MediaHead::of(&result.meta, self.expiry);
                Ok(Some((head, MediaBody::of(result))))
            }
            Err(object_store::Error::NotFound { .. }) => self.missing().await,
            Err(object_store::Error::Precondition { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The result for a missing file. If its folder is missing too, for example because a file system is not mounted,
    /// this is an error.
    async fn missing<T>(&self) -> Result<Option<T>, MediaError> {
        if matches!(self.store_method, StoreMethod::Rename) {
            tokio::fs::metadata(&*self.spool).await?;
        }
        Ok(None)
    }
}

pub(super) fn path_of(name: MediaName) -> Path {
    Path::from(name.to_string())
}

/// Creates a folder and checks that it is writable, by writing a file with a name that no other node uses.
fn prepare(folder: &FilePath) -> Result<(), MediaOpenError> {
    let probe = folder.join(spool::fresh_name());
    fs::create_dir_all(folder)
        .and_then(|()| File::create(&probe))
        .and_then(|_| fs::remove_file(&probe))
        .map_err(|source| MediaOpenError::Folder {
            path: folder.to_owned(),
            source,
        })
}
