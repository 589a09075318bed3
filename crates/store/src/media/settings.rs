//! Settings of the media storage: where it is, and how long it keeps files.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Settings of the media storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaSettings {
    pub place: MediaPlace,
    /// How long a medium is served.
    pub expiry: Duration,
    /// How long an expired medium is kept as evidence before it is deleted.
    pub keep_expired: Duration,
    /// The floor of free bytes on the disk of incoming files. Below twice this size no file is accepted, because the
    /// ledger may be on the same disk.
    pub disk_floor_bytes: u64,
}

/// The location of the media storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MediaPlace {
    /// A folder of this machine, or a folder that all nodes share.
    Folder(PathBuf),
    /// A bucket of an S3-compatible service.
    Bucket(Bucket),
}

/// A bucket and its credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct Bucket {
    pub name: String,
    /// The prefix of our object names, without a trailing slash. May be empty.
    pub prefix: String,
    /// `http://` or `https://` and the host. `None` is the vendor's own endpoint.
    pub endpoint: Option<String>,
    pub region: String,
    pub access_key_id: String,
    pub secret_access_key: String,
    /// Certificates to trust for the service, in addition to the public authorities.
    pub ca_file: Option<PathBuf>,
    /// The folder in which files are checked before they are uploaded.
    pub spool: PathBuf,
}

impl Default for MediaSettings {
    fn default() -> Self {
        Self {
            place: MediaPlace::Folder(PathBuf::from("tollgate-data/media")),
            expiry: Duration::from_secs(24 * 60 * 60),
            keep_expired: Duration::ZERO,
            disk_floor_bytes: 512 << 20,
        }
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket")
            .field("name", &self.name)
            .field("prefix", &self.prefix)
            .field("endpoint", &self.endpoint)
            .field("region", &self.region)
            .field("access_key_id", &"***")
            .field("secret_access_key", &"***")
            .field("ca_file", &self.ca_file)
            .field("spool", &self.spool)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_shown_without_its_secrets() {
        let bucket = Bucket {
            name: "b".to_owned(),
            prefix: String::new(),
            endpoint: None,
            region: "r".to_owned(),
            access_key_id: "hidden".to_owned(),
            secret_access_key: "hidden".to_owned(),
            ca_file: None,
            spool: PathBuf::from("s"),
        };
        assert!(!format!("{bucket:?}").contains("hidden"));
    }
}
