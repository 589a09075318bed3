//! The database behind the verbs.

use std::sync::Arc;

use crate::command::Command;
use crate::error::OpenError;
use crate::queue::Refused;
use crate::settings::Settings;
use crate::sqlite::Sqlite;
use crate::store::Recovery;

/// One of the databases; all of them know the same verbs.
#[derive(Debug, Clone)]
pub(crate) enum Backend {
    Sqlite(Arc<Sqlite>),
}

/// Says a verb to whichever database it is.
macro_rules! on {
    ($store:expr, $backend:ident => $verb:expr) => {
        match &$store.backend {
            Backend::Sqlite($backend) => $verb,
        }
    };
}
pub(crate) use on;

impl Backend {
    pub(crate) fn open(settings: &Settings) -> Result<(Self, Recovery), OpenError> {
        let (sqlite, recovery) = Sqlite::open(settings)?;
        Ok((Self::Sqlite(Arc::new(sqlite)), recovery))
    }

    pub(crate) fn attach(settings: &Settings) -> Result<Self, OpenError> {
        Ok(Self::Sqlite(Arc::new(Sqlite::attach(settings)?)))
    }

    /// Queues a command that somebody waits for.
    pub(crate) fn push(&self, command: Command) -> Result<(), Refused> {
        match self {
            Self::Sqlite(sqlite) => sqlite.push(command),
        }
    }

    /// Queues a command that nobody waits for and that may not be refused.
    pub(crate) fn push_close(&self, command: Command) {
        match self {
            Self::Sqlite(sqlite) => sqlite.push_close(command),
        }
    }
}
