//! The storages on which each test runs.

use std::path::PathBuf;
use std::task::Poll;
use std::time::Duration;

use ledger::UnixMs;
use store::{
    Bucket, Media, MediaBody, MediaError, MediaId, MediaName, MediaPlace, MediaSettings, MediaType,
};

use super::s3::{ACCESS_KEY, BUCKET, S3, SECRET_KEY};

pub(super) const EXPIRY: Duration = Duration::from_secs(3600);

/// A media storage and the parts below it.
pub(super) struct TestStorage {
    pub(super) media: Media,
    pub(super) settings: MediaSettings,
    /// The folder in which stored objects end up.
    pub(super) objects: PathBuf,
    /// The folder of incoming files.
    pub(super) spool: PathBuf,
    pub(super) s3: Option<S3>,
    _folder: tempfile::TempDir,
}

impl TestStorage {
    pub(super) fn folder() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let objects = folder.path().join("media");
        let settings = settings(MediaPlace::Folder(objects.clone()));
        Self {
            media: Media::open(&settings).unwrap(),
            settings,
            spool: objects.join("incoming"),
            objects,
            s3: None,
            _folder: folder,
        }
    }

    pub(super) async fn bucket() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let s3 = S3::start().await;
        let spool = folder.path().join("spool");
        let settings = settings(MediaPlace::Bucket(Bucket {
            name: BUCKET.to_owned(),
            prefix: "one/two".to_owned(),
            endpoint: Some(format!("http://{}", s3.address)),
            region: "us-east-1".to_owned(),
            access_key_id: ACCESS_KEY.to_owned(),
            secret_access_key: SECRET_KEY.to_owned(),
            ca_file: None,
            spool: spool.clone(),
        }));
        Self {
            media: Media::open(&settings).unwrap(),
            settings,
            objects: s3.bucket().join("one/two"),
            spool,
            s3: Some(s3),
            _folder: folder,
        }
    }

    pub(super) async fn all() -> [(&'static str, Self); 2] {
        [("folder", Self::folder()), ("bucket", Self::bucket().await)]
    }

    pub(super) async fn keep(&self, name: MediaName, bytes: &[u8]) -> Result<(), MediaError> {
        keep(&self.media, name, bytes).await
    }

    /// The number of incoming files.
    pub(super) fn on_their_way(&self) -> usize {
        std::fs::read_dir(&self.spool).unwrap().count()
    }
}

fn settings(place: MediaPlace) -> MediaSettings {
    MediaSettings {
        place,
        expiry: EXPIRY,
        keep_expired: Duration::ZERO,
        disk_floor_bytes: 0,
    }
}

pub(super) async fn keep(media: &Media, name: MediaName, bytes: &[u8]) -> Result<(), MediaError> {
    let mut spool = media.spool(u64::MAX).await?;
    for piece in bytes.chunks(100_000) {
        spool.write(piece).await?;
    }
    media.keep(spool.finish().await?, name).await
}

pub(super) fn fresh(kind: MediaType) -> MediaName {
    let id = MediaId::random();
    MediaName { id, kind }
}

/// The numbers from 0 on in four bytes each, so that no aligned group of four bytes repeats.
pub(super) fn film(length: usize) -> Vec<u8> {
    let words = (0..length.div_ceil(4)).map(|n| (u32::try_from(n).unwrap()).to_be_bytes());
    words.flatten().take(length).collect()
}

pub(super) async fn collect(mut body: MediaBody) -> Result<Vec<u8>, MediaError> {
    let mut all = Vec::new();
    while let Some(piece) = std::future::poll_fn(|cx| body.poll_piece(cx)).await {
        all.extend_from_slice(&piece?);
    }
    assert!(matches!(
        body.poll_piece(&mut std::task::Context::from_waker(std::task::Waker::noop())),
        Poll::Ready(None)
    ));
    Ok(all)
}

pub(super) fn now() -> UnixMs {
    let since = std::time::UNIX_EPOCH.elapsed().unwrap();
    UnixMs::new(i64::try_from(since.as_millis()).unwrap())
}

/// A time at which everything stored so far has expired.
pub(super) fn after_expiry() -> UnixMs {
    now().plus_ms(i64::try_from(EXPIRY.as_millis()).unwrap() + 1)
}
