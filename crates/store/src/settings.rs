//! Settings of a store: where the database is, and its limits.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use ledger::Micro;

use crate::books::Limits;
use crate::queue::journal_queue::JournalBounds;

/// The time limit of a server's searches. It is short because there are few connections for searches.
const SEARCH_MAX: Duration = Duration::from_secs(5);
/// The time limit of a command's searches.
pub(crate) const COMMAND_SEARCH_MAX: Duration = Duration::from_secs(60);
/// The maximum number of searches that wait for a connection.
pub(crate) const SEARCHES_WAITING_MAX: usize = 256;

/// The maximum time that one of our ledger statements may run, and that a transaction may stay idle. A process that is
/// suspended within a transaction must not keep its locks.
pub(crate) const STEP_MAX: Duration = Duration::from_secs(5);
/// How long the outcome of a lost commit usually stays unknown. After this time the database has ended the transaction.
pub(crate) const LOST_COMMIT_MAX: Duration = Duration::from_secs(STEP_MAX.as_secs() + 3);

/// Settings of a store. Every limit has a default.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The kind and location of the database.
    pub location: Location,
    /// How long a batch stays open for more settlements if no caller waits for it. With `SQLite` under load, a batch
    /// may stay open for this time even if a caller waits for it, and for ten times as long if none does.
    pub gather: Duration,
    /// The maximum time between the commit of a batch and its sync if no caller waits for the batch.
    pub sync_delay: Duration,
    /// A disk is quick if its last sync took at most this time. With a quick disk, a batch that a caller waits for is
    /// written as soon as all calls of the batch have ended.
    pub quick_sync: Duration,
    /// The maximum number of admissions that wait for the writer. Further ones are refused as busy.
    pub queue_max: usize,
    /// How long an admission waits for the writer before it is refused as busy.
    pub queue_wait_max: Duration,
    /// The time limit of a list, search or report on a server. Calls never wait for these.
    pub search_max: Duration,
    /// The maximum time that the writer, or a command while a server runs, waits for another writer.
    pub lock_wait_max: Duration,
    /// The maximum number of wallet rows, and of key rows, that the writer caches.
    pub cached_rows_max: usize,
    /// How far below its credit line open calls may take a wallet if each of them costs its maximum.
    pub debt_limit: Micro,
    /// The write-ahead log is copied into the database when it exceeds this size.
    pub wal_bytes_max: u64,
    /// Admission stops below this many free bytes, and the journal below twice as many.
    pub disk_floor_bytes: u64,
    /// The number of days that a journal row is kept. 0 keeps it forever.
    pub journal_retention_days: u32,
    /// The maximum number of journal rows that wait to be written. Further ones are dropped and counted. With
    /// `PostgreSQL`, rows of calls without a hold may take up at most a quarter of them.
    pub journal_queue_max: usize,
    /// The maximum size of the texts in waiting journal rows. Bodies that do not fit are left out and counted.
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

    pub(crate) fn book_limits(&self) -> Limits {
        Limits {
            cached_rows_max: self.cached_rows_max,
            debt_limit: self.debt_limit,
        }
    }

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

/// The kind and location of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// An embedded `SQLite` database. Its companion files (`-wal`, `-shm`, `-lock`, `-turn`, `-waiting`, `-ballast`,
    /// `-calls`) are beside it.
    File(PathBuf),
    /// A `PostgreSQL` server that any number of nodes share.
    Server(Server),
}

/// A `PostgreSQL` server and how this node uses it.
#[derive(Clone, PartialEq, Eq)]
pub struct Server {
    /// `postgres://user@host:port,host:port/database?sslmode=…`. It may contain a password. If there are several hosts,
    /// the writable one is used.
    pub url: String,
    /// The password, if the URL contains none.
    pub password: Option<String>,
    /// Certificates to trust for the server, in addition to the public authorities.
    pub ca_file: Option<PathBuf>,
    /// The name of this node. `None` chooses a random name.
    pub node: Option<String>,
    /// How long a node that no longer renews its lease keeps its holds.
    pub lease: Duration,
    /// The maximum number of batches of different wallets that run at once. Values outside 1 to 14 are clamped.
    pub lanes: usize,
    /// The maximum time of one attempt to find out the outcome of a commit whose answer was lost.
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
            lost_commit_max: LOST_COMMIT_MAX,
        }
    }

    /// The URL without its password, for messages.
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
            quick_sync: Duration::from_millis(1),
            queue_max: 4_096,
            queue_wait_max: Duration::from_millis(250),
            search_max: SEARCH_MAX,
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
