//! Dispatches the operations of a store to its database, `SQLite` or `PostgreSQL`.

use std::sync::Arc;

use crate::error::{AdmitError, OpenError};
use crate::postgres::Postgres;
use crate::queue::command::AdmittedCall;
use crate::queue::command::Command;
use crate::queue::command_queue::PushError;
use crate::records::call::{Admit, Close};
use crate::records::recovery::Recovery;
use crate::settings::{Location, Settings};
use crate::sqlite::Sqlite;

/// The database of a store. Both kinds support the same operations.
#[derive(Debug, Clone)]
pub(crate) enum Backend {
    Sqlite(Arc<Sqlite>),
    Postgres(Arc<Postgres>),
}

/// Calls the same operation on whichever database the store has.
macro_rules! on {
    ($store:expr, $backend:ident => $verb:expr) => {
        match &$store.backend {
            Backend::Sqlite($backend) => $verb,
            Backend::Postgres($backend) => $verb,
        }
    };
}
pub(crate) use on;

impl Backend {
    pub(crate) fn open(settings: &Settings) -> Result<(Self, Recovery), OpenError> {
        match &settings.location {
            Location::File(path) => {
                let (sqlite, recovery) = Sqlite::open(path, settings)?;
                Ok((Self::Sqlite(Arc::new(sqlite)), recovery))
            }
            Location::Server(server) => {
                let (postgres, recovery) = Postgres::open(server, settings)?;
                Ok((Self::Postgres(Arc::new(postgres)), recovery))
            }
        }
    }

    pub(crate) fn attach(settings: &Settings) -> Result<Self, OpenError> {
        match &settings.location {
            Location::File(path) => Ok(Self::Sqlite(Arc::new(Sqlite::attach(path, settings)?))),
            Location::Server(server) => {
                let postgres = Postgres::attach(server, settings)?;
                Ok(Self::Postgres(Arc::new(postgres)))
            }
        }
    }

    /// Decides a call at once if possible. Otherwise returns the request, so that the caller can queue it.
    pub(crate) fn admit_now(
        &self,
        admit: Admit,
    ) -> Result<Result<AdmittedCall, AdmitError>, Admit> {
        match self {
            Self::Sqlite(sqlite) => sqlite.admit_now(admit),
            Self::Postgres(_) => Err(admit),
        }
    }

    /// Closes a hold at once if possible, and otherwise queues the close.
    pub(crate) fn close(&self, closing: Close) {
        match self {
            Self::Sqlite(sqlite) => sqlite.close(closing),
            Self::Postgres(postgres) => postgres.push_close(Command::Close(closing)),
        }
    }

    /// Queues a command that a caller waits for.
    pub(crate) async fn push(&self, command: Command) -> Result<(), PushError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.push(command),
            Self::Postgres(postgres) => postgres.push(command).await,
        }
    }

    /// Queues a command that no caller waits for. It is never refused.
    pub(crate) fn push_close(&self, command: Command) {
        match self {
            Self::Sqlite(sqlite) => sqlite.push_close(command),
            Self::Postgres(postgres) => postgres.push_close(command),
        }
    }
}
