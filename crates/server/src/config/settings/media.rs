//! `[media]`: where generated media are kept.

use std::path::PathBuf;
use std::time::Duration;

use toml::de::DeValue;

use crate::config::document::setting::{
    Example, Setting, hours, hours_or_zero, minutes, optional, optional_path, path, secret,
    settings,
};
use crate::config::document::{SecretSource, Section, value};

settings! {
    /// Where generated media are kept, and for how long.
    pub struct Media in "media" {
        /// Where generated media are kept: `file:FOLDER` or `s3://BUCKET/PREFIX` (docs/operations.md).
        pub place: MediaPlace = media_place("url", "tollgate-data/media"),
        /// The address of an S3-compatible service; the vendor's own if left out.
        pub endpoint: Option<String> =
            optional("endpoint", value::web_address, r#""https://s3.example.com""#),
        /// The region of the bucket; us-east-1 if left out, which most services of other vendors accept.
        pub region: Option<String> = optional("region", value::text, r#""eu-central-1""#),
        /// The id of the access key of the bucket.
        pub access_key_id: Option<SecretSource> =
            secret("access_key_id", r#"{ env = "S3_ACCESS_KEY_ID" }"#),
        /// The secret of that access key.
        pub secret_access_key: Option<SecretSource> =
            secret("secret_access_key", r#"{ env = "S3_SECRET_ACCESS_KEY" }"#),
        /// Certificates (PEM) of authorities that are trusted for the service, in addition to the public ones.
        pub ca_file: Option<PathBuf> = optional_path("ca_file", r#""s3-ca.pem""#),
        /// The folder in which files are checked before they are uploaded to a bucket. With `file:FOLDER` it is
        /// not used: files are checked in `incoming` of that folder.
        pub spool: PathBuf = path("spool", "tollgate-data/media-spool"),
        /// How long a media URL works.
        pub expiry: Duration = hours("expiry_hours", 24),
        /// How long a file is kept as evidence after its URL has expired, before it is deleted.
        pub keep_expired: Duration = hours_or_zero("keep_expired_hours", 0),
        /// The time between two searches for files to delete.
        pub sweep: Duration = minutes("sweep_minutes", 60),
    }
}

/// The storage for generated media.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MediaPlace {
    Folder(PathBuf),
    Bucket { bucket: String, prefix: String },
}

impl Media {
    /// Reads the table, and checks that a bucket has both credentials.
    pub(crate) fn read_checked(section: &mut Section<'_, '_, '_>) -> Self {
        let media = Self::read(section);
        if let MediaPlace::Bucket { .. } = media.place
            && (media.access_key_id.is_none() || media.secret_access_key.is_none())
        {
            section.report("a bucket needs access_key_id and secret_access_key");
        }
        media
    }
}

fn media_place(key: &'static str, folder: &'static str) -> Setting<MediaPlace> {
    Setting {
        key,
        default: MediaPlace::Folder(PathBuf::from(folder)),
        example: Example::Default(format!("\"file:{folder}\"")),
        reader: Box::new(|section, key, default| {
            match section.value(key, parse_place).unwrap_or(default) {
                MediaPlace::Folder(path) => MediaPlace::Folder(section.folder().join(path)),
                bucket @ MediaPlace::Bucket { .. } => bucket,
            }
        }),
    }
}

fn parse_place(raw: &DeValue<'_>) -> Result<MediaPlace, String> {
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
