//! The errors of a store, one enum for each kind of operation.

use std::path::PathBuf;
use std::time::Duration;

use ledger::{Rates, Refusal};

/// Errors from opening a store.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another server holds this database.
    #[error("{path}: another server is running on this database (lock file {lock})", path = path.display(), lock = lock.display())]
    Locked { path: PathBuf, lock: PathBuf },
    /// Another node with this name is running.
    #[error(
        "{place}: another node named {node} is running; give each node a name of its own (server.node), or none"
    )]
    NodeRunning { place: String, node: String },
    /// The database was written by a later version.
    #[error(
        "{place}: the schema is version {found}, this program knows up to {known}; use a newer program"
    )]
    NewerSchema {
        place: String,
        found: i32,
        known: i32,
    },
    /// A running server still uses an older schema.
    #[error(
        "{place}: the schema is version {found}, this program needs {known}; restart the server with this program first"
    )]
    OlderSchema {
        place: String,
        found: i32,
        known: i32,
    },
    /// Nodes of a version that does not chain entries or store balances are still running.
    #[error(
        "{place}: nodes of an earlier version still run, and their entries would break the wallets' chains and statements; stop all of them before the first node of this version starts"
    )]
    OlderNodes { place: String },
    /// A move or restore to this database is not complete.
    #[error(
        "{place}: a move or restore to this database is not complete; run the same command again, or empty the database"
    )]
    UnfinishedMove { place: String },
    /// The file is damaged or not a database.
    #[error("{path}: the file is damaged or not a database: {reason}", path = path.display())]
    Corrupt { path: PathBuf, reason: String },
    /// The file is a database of another program.
    #[error("{path}: the file is a database of another program", path = path.display())]
    Foreign { path: PathBuf },
    /// The server's address or certificates cannot be used.
    #[error("{place}: {reason}")]
    Server { place: String, reason: String },
    /// A migration failed. All migrations are one transaction, so the schema is unchanged.
    #[error("{place}: migration failed")]
    Migrate {
        place: String,
        source: Box<refinery_core::Error>,
    },
    /// The file system reported an error.
    #[error("{path}: {source}", path = path.display())]
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
    /// The database could not be opened. With `PostgreSQL`, its address, credentials or schema are wrong.
    #[error("{place}: {source}")]
    Database {
        place: String,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The database cannot be used at present. A retry may succeed later.
    #[error("{place}: {source}")]
    Away {
        place: String,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl OpenError {
    /// Whether opening may succeed later without a change of the configuration.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Away { .. })
    }
}

/// Errors from operations other than admission.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No such wallet or key.
    #[error("no such {what}: {id}")]
    NotFound { what: &'static str, id: String },
    /// The name is taken.
    #[error("a {what} named {name} exists already")]
    Taken { what: &'static str, name: String },
    /// The arguments are invalid.
    #[error("{0}")]
    Invalid(String),
    /// The reference belongs to another entry.
    #[error("the reference {reference} belongs to entry {seq}, which differs")]
    ReferenceConflict { reference: String, seq: i64 },
    /// The wallet, or the top-up to refund, does not cover the amount.
    #[error("only {amount_max} credits can be taken")]
    NotCovered { amount_max: ledger::Micro },
    /// An amount is outside the range that can be stored.
    #[error("the amount leaves the range of money")]
    Overflow,
    /// The read was ended because it took too long.
    #[error("the search took longer than {} s and was ended; narrow it", limit.as_secs())]
    TooSlow { limit: Duration },
    /// The change did not become durable, too many requests wait, or the store is closing.
    #[error("the store is not available")]
    Unavailable,
    /// The database rejected the operation.
    #[error("the database refused: {0}")]
    Database(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The database cannot be used at present. A retry may succeed later.
    #[error("the database cannot be used at present: {0}")]
    Away(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl StoreError {
    /// Whether a retry may succeed later.
    pub fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::Unavailable | Self::Away(_) | Self::TooSlow { .. }
        )
    }
}

/// Errors from an admission. Nothing was consumed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AdmitError {
    /// The ledger refused the call.
    #[error("refused: {refusal}")]
    Refused {
        refusal: Refusal,
        /// The state of the key's rate limits, for the response headers.
        rates: Rates,
    },
    /// Too many admissions are queued, or this one waited too long.
    #[error("the ledger is busy")]
    Busy,
    /// The ledger cannot admit calls at present: the disk is nearly full or failing, or the store is closing.
    #[error("the ledger is not available")]
    Unavailable,
}

impl AdmitError {
    /// The state of the key's rate limits, if the ledger refused the call.
    pub fn rates(&self) -> Option<Rates> {
        match self {
            Self::Refused { rates, .. } => Some(*rates),
            Self::Busy | Self::Unavailable => None,
        }
    }
}

/// The commit or the sync of the decision failed, so the caller must treat the decision as lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the decision did not become durable")]
pub struct NotDurable;
