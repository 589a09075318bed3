//! Where generated media lies.

use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::de::DeValue;

use super::super::secret::{SecretSource, read_source};
use super::super::tree::Section;
use super::super::value;

/// `[media]`: where generated media is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Media {
    pub place: MediaPlace,
    /// The address of an S3-compatible service that is not the vendor's own.
    pub endpoint: Option<String>,
    pub region: Option<String>,
    pub access_key_id: Option<SecretSource>,
    pub secret_access_key: Option<SecretSource>,
    /// How long a media URL answers.
    pub expiry: Duration,
}

/// The storage behind the media URLs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MediaPlace {
    Folder(PathBuf),
    Bucket { bucket: String, prefix: String },
}

impl Default for Media {
    fn default() -> Self {
        Self {
            place: MediaPlace::Folder(PathBuf::from("tollgate-data/media")),
            endpoint: None,
            region: None,
            access_key_id: None,
            secret_access_key: None,
            expiry: Duration::from_secs(24 * 60 * 60),
        }
    }
}

impl Media {
    pub(in super::super) fn read(mut section: Section<'_, '_, '_>, folder: &Path) -> Self {
        let mut out = Self::default();
        section.set("url", &mut out.place, media_place);
        if let MediaPlace::Folder(path) = &mut out.place {
            *path = folder.join(&path);
        }
        out.endpoint = section.value("endpoint", value::web_address);
        out.region = section.value("region", value::text);
        out.access_key_id = read_source(&mut section, "access_key_id", folder);
        out.secret_access_key = read_source(&mut section, "secret_access_key", folder);
        section.set("expiry_hours", &mut out.expiry, hours);
        section.end();
        out
    }
}

fn media_place(raw: &DeValue<'_>) -> Result<MediaPlace, String> {
    let url = value::text(raw)?;
    let shape = "must be file:FOLDER or s3://BUCKET/PREFIX";
    if let Some(rest) = url.strip_prefix("s3://") {
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(shape.to_owned());
        }
        return Ok(MediaPlace::Bucket {
            bucket: bucket.to_owned(),
            prefix: prefix.trim_matches('/').to_owned(),
        });
    }
    match url
        .strip_prefix("file:")
        .map(|rest| rest.strip_prefix("//").unwrap_or(rest))
    {
        Some(path) if !path.is_empty() => Ok(MediaPlace::Folder(PathBuf::from(path))),
        _ => Err(shape.to_owned()),
    }
}

fn hours(raw: &DeValue<'_>) -> Result<Duration, String> {
    /// Ten years.
    const HOURS_MAX: u32 = 10 * 366 * 24;
    match value::positive::<u32>(raw)? {
        long if long > HOURS_MAX => Err(format!("must be at most {HOURS_MAX}")),
        hours => Ok(Duration::from_secs(u64::from(hours) * 3600)),
    }
}
