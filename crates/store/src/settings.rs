//! How a store is opened: where it lies and how much of everything it may use.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use ledger::Micro;

use crate::books::Limits;
use crate::queue::journal_queue::JournalBounds;

/// Settings of a store; every bound has a default.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Which database, and where.
    pub location: Location,
    /// How far apart batches start under load, and how long a lone settlement waits for company.
    pub gather: Duration,
    /// How long a committed batch may wait for its sync while nobody waits for it.
    pub sync_delay: Duration,
    /// Admissions that may wait for the writer; one more is refused as busy.
    pub queue_max: usize,
    /// How long an admission waits for the writer before it is refused as busy.
    pub queue_wait_max: Duration,
    /// How long the writer, or a command beside a running server, waits for another writer.
    pub lock_wait_max: Duration,
    /// Wallet and key rows kept by the writer, of each kind.
    pub cached_rows_max: usize,
    /// How far open calls may take a wallet below its credit line, each at the most it may cost.
    pub debt_limit: Micro,
    /// The write-ahead log is folded into the database when it is larger than this.
    pub wal_bytes_max: u64,
    /// Free bytes below which admission stops; the journal stops at twice as much.
    pub disk_floor_bytes: u64,
    /// Days a journal row is kept; 0 keeps it for ever.
    pub journal_retention_days: u32,
    /// Journal rows that may wait to be written; what comes above is dropped and counted. With `PostgreSQL` rows of
    /// calls without a hold take a quarter of it at most.
    pub journal_queue_max: usize,
    /// Bytes of texts in them. Bodies that do not fit are left out of their rows and counted.
    pub journal_queue_bytes_max: usize,
}

impl Settings {
    /// The default of [`Settings::debt_limit`]: ten credits.
    pub const DEBT_LIMIT: Micro = Micro::new(10_000_000);

    /// The defaults, for a database at `path`.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            location: Location::File(path.into()),
            ..Self::default()
        }
    }

    /// What bounds the ledger's books.
    pub(crate) fn book_limits(&self) -> Limits {
        Limits {
            cached_rows_max: self.cached_rows_max,
            debt_limit: self.debt_limit,
        }
    }

    /// How much of the journal may wait to be written.
    pub(crate) fn journal_bounds(&self) -> JournalBounds {
        JournalBounds {
            rows_max: self.journal_queue_max,
            bytes_max: self.journal_queue_bytes_max,
        }
    }

    /// The defaults, for a `PostgreSQL` server.
    pub fn on(server: Server) -> Self {
        Self {
            location: Location::Server(server),
            ..Self::default()
        }
    }
}

/// Which database, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// An embedded `SQLite` database; its companions (`-wal`, `-shm`, `-lock`, `-turn`, `-calls`) lie beside it.
    File(PathBuf),
    /// A `PostgreSQL` server that any number of nodes share.
    Server(Server),
}

/// A `PostgreSQL` server and how this node uses it.
#[derive(Clone, PartialEq, Eq)]
pub struct Server {
    /// `postgres://user@host:port,host:port/database?sslmode=…`; it may hold a password. Of several hosts the one
    /// that can be written to is used.
    pub url: String,
    /// The password, when the URL holds none.
    pub password: Option<String>,
    /// Certificates that vouch for the server, beside the public ones.
    pub ca_file: Option<PathBuf>,
    /// The name of this node; random when there is none.
    pub node: Option<String>,
    /// How long a node that falls silent keeps its holds.
    pub lease: Duration,
    /// Batches of different wallets that may be under way at once; 1 to 16.
    pub lanes: usize,
    /// How long a commit whose answer was lost is asked about at a stretch.
    pub lost_commit_max: Duration,
}

impl Server {
    /// The defaults, for the server at `url`.
    pub fn at(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            password: None,
            ca_file: None,
            node: None,
            lease: Duration::from_secs(20),
            lanes: 2,
            lost_commit_max: crate::postgres::LOST_COMMIT_MAX,
        }
    }

    /// Whether the URL can be used at all; says why not.
    pub fn check(&self) -> Result<(), String> {
        crate::postgres::check(self)
    }

    /// The URL as it may be shown.
    pub fn shown(&self) -> String {
        let Some((scheme, rest)) = self.url.split_once("://") else {
            return "postgres".to_owned();
        };
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
        format!("{scheme}://{place}")
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("url", &self.shown())
            .field("node", &self.node)
            .field("lease", &self.lease)
            .field("lanes", &self.lanes)
            .finish_non_exhaustive()
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            location: Location::File(PathBuf::from("tollgate-data/tollgate.db")),
            gather: Duration::from_millis(1),
            sync_delay: Duration::from_millis(5),
            queue_max: 4_096,
            queue_wait_max: Duration::from_millis(250),
            lock_wait_max: Duration::from_secs(5),
            cached_rows_max: 16_384,
            debt_limit: Self::DEBT_LIMIT,
            wal_bytes_max: 64 * 1024 * 1024,
            disk_floor_bytes: 512 * 1024 * 1024,
            journal_retention_days: 30,
            journal_queue_max: 16_384,
            journal_queue_bytes_max: 64 << 20,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_shown_without_its_secrets() {
        for (url, shown) in [
            (
                "postgres://u:secret@db:5432/toll",
                "postgres://db:5432/toll",
            ),
            (
                "postgres://u:se@cret@db/toll?password=secret",
                "postgres://db/toll",
            ),
            ("postgresql://db", "postgresql://db"),
            ("host=db password=secret", "postgres"),
        ] {
            let server = Server {
                password: Some("secret".to_owned()),
                ..Server::at(url)
            };
            assert_eq!(server.shown(), shown);
            assert!(!format!("{server:?}").contains("secret"), "{server:?}");
        }
    }
}
