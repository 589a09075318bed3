//! The database behind the verbs.

use std::sync::Arc;

use crate::error::{AdmitError, OpenError};
use crate::postgres::Postgres;
use crate::queue::command::Command;
use crate::queue::command_queue::PushError;
use crate::records::call::{Admit, Admitted, Close};
use crate::settings::{Location, Settings};
use crate::sqlite::Sqlite;
use crate::store::Recovery;

/// One of the databases; all of them know the same verbs.
#[derive(Debug, Clone)]
pub(crate) enum Backend {
    Sqlite(Arc<Sqlite>),
    Postgres(Arc<Postgres>),
}

/// Says a verb to whichever database it is.
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

    /// Decides on a call at once where that is possible, else gives it back to be queued.
    pub(crate) fn admit_now(&self, admit: Admit) -> Result<Result<Admitted, AdmitError>, Admit> {
        match self {
            Self::Sqlite(sqlite) => sqlite.admit_now(admit),
            Self::Postgres(_) => Err(admit),
        }
    }

    /// Ends a hold, now or soon.
    pub(crate) fn close(&self, closing: Close) {
        match self {
            Self::Sqlite(sqlite) => sqlite.close(closing),
            Self::Postgres(postgres) => postgres.push_close(Command::Close(closing)),
        }
    }

    /// Queues a command that somebody waits for.
    pub(crate) async fn push(&self, command: Command) -> Result<(), PushError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.push(command),
            Self::Postgres(postgres) => postgres.push(command).await,
        }
    }

    /// Queues a command that nobody waits for and that may not be refused.
    pub(crate) fn push_close(&self, command: Command) {
        match self {
            Self::Sqlite(sqlite) => sqlite.push_close(command),
            Self::Postgres(postgres) => postgres.push_close(command),
        }
    }
}
