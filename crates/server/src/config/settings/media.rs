//! Where generated media lies.

use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::de::DeValue;

use crate::config::document::{SecretSource, Section, read_source, value};

/// `[media]`: where generated media is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Media {
    pub place: MediaPlace,
    /// The address of an S3-compatible service that is not the vendor's own.
    pub endpoint: Option<String>,
    pub region: Option<String>,
    pub access_key_id: Option<SecretSource>,
    pub secret_access_key: Option<SecretSource>,
    /// Certificates that vouch for the service, beside the public ones.
    pub ca_file: Option<PathBuf>,
    /// Where files are checked on their way into a bucket.
    pub spool: PathBuf,
    /// How long a media URL answers.
    pub expiry: Duration,
    /// How much longer the file is kept.
    pub keep_expired: Duration,
    /// The pause between two sweeps.
    pub sweep: Duration,
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
            ca_file: None,
            spool: PathBuf::from("tollgate-data/media-spool"),
            expiry: Duration::from_secs(24 * 60 * 60),
            keep_expired: Duration::ZERO,
            sweep: Duration::from_secs(60 * 60),
        }
    }
}

impl Media {
    pub(crate) fn read(mut section: Section<'_, '_, '_>, folder: &Path) -> Self {
        let mut out = Self::default();
        section.set("url", &mut out.place, media_place);
        if let MediaPlace::Folder(path) = &mut out.place {
            *path = folder.join(&path);
        }
        out.endpoint = section.value("endpoint", value::web_address);
        out.region = section.value("region", value::text);
        out.access_key_id = read_source(&mut section, "access_key_id", folder);
        out.secret_access_key = read_source(&mut section, "secret_access_key", folder);
        let ca_file = section.value("ca_file", value::text);
        out.ca_file = ca_file.map(|path| folder.join(path));
        section.set("spool", &mut out.spool, |raw| {
            value::text(raw).map(PathBuf::from)
        });
        out.spool = folder.join(&out.spool);
        section.set("expiry_hours", &mut out.expiry, hours);
        section.set("keep_expired_hours", &mut out.keep_expired, hours_or_zero);
        section.set("sweep_minutes", &mut out.sweep, minutes);
        if let MediaPlace::Bucket { .. } = out.place
            && (out.access_key_id.is_none() || out.secret_access_key.is_none())
        {
            section.report("a bucket needs access_key_id and secret_access_key");
        }
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
    value::positive::<u32>(raw).and_then(|hours| at_most(hours, HOURS_MAX, 3600))
}

fn hours_or_zero(raw: &DeValue<'_>) -> Result<Duration, String> {
    value::count::<u32>(raw).and_then(|hours| at_most(hours, HOURS_MAX, 3600))
}

fn minutes(raw: &DeValue<'_>) -> Result<Duration, String> {
    /// A day.
    const MINUTES_MAX: u32 = 24 * 60;
    value::positive::<u32>(raw).and_then(|minutes| at_most(minutes, MINUTES_MAX, 60))
}

/// Ten years.
const HOURS_MAX: u32 = 10 * 366 * 24;

fn at_most(count: u32, max: u32, unit_secs: u64) -> Result<Duration, String> {
    if count > max {
        return Err(format!("must be at most {max}"));
    }
    Ok(Duration::from_secs(u64::from(count) * unit_secs))
}
