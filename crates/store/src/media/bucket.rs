//! Stores media in a bucket of an S3-compatible service.

use std::fs::File;
use std::io::{self, Read as _};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object_store::aws::AmazonS3Builder;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{
    Attribute, Attributes, BackoffConfig, MultipartUpload, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, RetryConfig,
};
use tokio::time::timeout;

use super::error::{MediaError, MediaOpenError};
use super::http_sender::HttpSender;
use super::name::MediaType;
use super::settings::Bucket;
use super::spool::{Spooled, blocking};

/// The size of one part of an upload, which is also the memory that an upload takes. Services refuse parts smaller than
/// 5 MiB, except the last.
const PART_BYTES: u64 = 8 << 20;
/// The time limit for removing an unfinished upload.
const ABORT_MAX: Duration = Duration::from_secs(10);

pub(super) fn open(bucket: &Bucket) -> Result<Arc<dyn ObjectStore>, MediaOpenError> {
    let sender = HttpSender::trusting(bucket.ca_file.as_deref()).map_err(MediaOpenError::Bucket)?;
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(&bucket.name)
        .with_region(&bucket.region)
        .with_access_key_id(&bucket.access_key_id)
        .with_secret_access_key(&bucket.secret_access_key)
        .with_http_connector(sender)
        .with_retry(RetryConfig {
            backoff: BackoffConfig {
                init_backoff: Duration::from_millis(100),
                max_backoff: Duration::from_secs(2),
                base: 2.0,
            },
            max_retries: 3,
            retry_timeout: Duration::from_secs(20),
        });
    if let Some(endpoint) = &bucket.endpoint {
        builder = builder
            .with_endpoint(endpoint)
            .with_allow_http(endpoint.starts_with("http://"));
    }
    let service = builder
        .build()
        .map_err(|error| MediaOpenError::Bucket(error.to_string()))?;
    if bucket.prefix.is_empty() {
        return Ok(Arc::new(service));
    }
    Ok(Arc::new(PrefixStore::new(service, &*bucket.prefix)))
}

/// Copies a file to the bucket. Readers see all of it or nothing.
pub(super) async fn upload(
    objects: &dyn ObjectStore,
    file: &Spooled,
    to: &Path,
    kind: MediaType,
) -> Result<(), MediaError> {
    let attributes = Attributes::from_iter([(Attribute::ContentType, kind.mime())]);
    let reader = file.open()?;
    if file.bytes() <= PART_BYTES {
        let (whole, _) = next_part(reader).await?;
        let options = PutOptions {
            attributes,
            ..PutOptions::default()
        };
        objects
            .put_opts(to, PutPayload::from_bytes(whole), options)
            .await?;
        return Ok(());
    }
    let options = PutMultipartOptions {
        attributes,
        ..PutMultipartOptions::default()
    };
    let mut upload = objects.put_multipart_opts(to, options).await?;
    let sent = send_parts(&mut *upload, reader).await;
    if sent.is_err() {
        // Parts that are left behind would cost storage. If the abort fails, the bucket's lifecycle rules remove them.
        let _ = timeout(ABORT_MAX, upload.abort()).await;
    }
    sent
}

/// Sends parts one after the other, so that an upload holds only one part in memory. A bucket takes parts faster than
/// an upstream delivers them, so this is fast enough.
async fn send_parts(upload: &mut dyn MultipartUpload, reader: File) -> Result<(), MediaError> {
    let mut reader = reader;
    loop {
        let (part, rest) = next_part(reader).await?;
        if part.is_empty() {
            break;
        }
        reader = rest;
        upload.put_part(PutPayload::from_bytes(part)).await?;
    }
    upload.complete().await?;
    Ok(())
}

async fn next_part(reader: File) -> io::Result<(Bytes, File)> {
    blocking(move || {
        let mut part = Vec::new();
        (&reader).take(PART_BYTES).read_to_end(&mut part)?;
        Ok((Bytes::from(part), reader))
    })
    .await
}
