//! `[store]`: the database.

use std::path::PathBuf;
use std::time::Duration;

use toml::de::DeValue;

use crate::config::document::setting::{
    Example, Setting, count, millis_within, optional_path, secret, settings,
};
use crate::config::document::{SecretSource, Section, value};

settings! {
    /// The database with wallets, keys, the ledger and the journal.
    pub struct Store in "store" {
        /// The database with wallets, keys, the ledger and the journal: an embedded file for one node, or a
        /// `PostgreSQL` server (15 or newer) that any number of nodes share:
        /// `postgres://tollgate@db.example.com/tollgate?sslmode=require` (docs/operations.md). If several servers are
        /// named, `postgres://tollgate@a.example.com,b.example.com/tollgate`, the writable one is used.
        pub url: StoreUrl = store_url("url", "tollgate-data/tollgate.db"),
        /// The password of the `PostgreSQL` server.
        pub password: Option<SecretSource> =
            secret("password", r#"{ env = "TOLLGATE_DB_PASSWORD" }"#),
        /// Certificates (PEM) of authorities that are trusted for the `PostgreSQL` server, in addition to the public
        /// ones.
        pub ca_file: Option<PathBuf> = optional_path("ca_file", r#""db-ca.pem""#),
        /// `PostgreSQL`: how long a silent node keeps its open holds before other nodes close them. A node would lose a
        /// shorter lease during an ordinary network interruption.
        pub lease: Duration = millis_within("lease_ms", 20_000, 1_000..=600_000),
        /// With a file: the free disk space below which no call is admitted; 0 admits calls until the disk is full.
        /// Media need twice as much, also with a server.
        pub disk_floor_bytes: u64 = count("disk_floor_bytes", 512 * 1024 * 1024),
    }
}

/// The database that `store.url` names.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// The file of the embedded database.
    File(PathBuf),
    /// A `PostgreSQL` server.
    Server(String),
}

impl StoreUrl {
    /// Parses `sqlite:PATH` or `postgres://USER@HOST/DATABASE`. `Err` says what is wrong.
    pub fn parse(url: &str) -> Result<Self, String> {
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return match store::Server::at(url).check() {
                Ok(()) => Ok(Self::Server(url.to_owned())),
                Err(reason) => Err(format!("is not a usable PostgreSQL URL: {reason}")),
            };
        }
        let path = url
            .strip_prefix("sqlite:")
            .map(|rest| rest.strip_prefix("//").unwrap_or(rest))
            .ok_or("must be sqlite:PATH or postgres://USER@HOST/DATABASE")?;
        if path.is_empty() || path == ":memory:" || path.ends_with('/') {
            return Err("must name a file, such as sqlite:tollgate-data/tollgate.db".to_owned());
        }
        Ok(Self::File(PathBuf::from(path)))
    }

    /// The path or URL, without a password.
    pub fn shown(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Server(url) => store::Server::at(url).shown(),
        }
    }
}

// `Debug` does not print the password that a URL may contain.
impl std::fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown())
    }
}

fn store_url(key: &'static str, file: &'static str) -> Setting<StoreUrl> {
    Setting {
        key,
        default: StoreUrl::File(PathBuf::from(file)),
        example: Example::Default(format!("\"sqlite:{file}\"")),
        reader: Box::new(|section, key, default| {
            match section.value(key, parse_url).unwrap_or(default) {
                StoreUrl::File(path) => StoreUrl::File(section.folder().join(path)),
                server @ StoreUrl::Server(_) => server,
            }
        }),
    }
}

fn parse_url(raw: &DeValue<'_>) -> Result<StoreUrl, String> {
    StoreUrl::parse(&value::text(raw)?)
}
