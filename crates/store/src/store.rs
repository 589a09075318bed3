//! The store: opens a database and passes operations to its writer. Each file in `store/` has the operations of one
//! subject.

mod access;
mod accounts;
mod alerts;
mod calls;
mod catalog;
mod import;
mod money;
mod reports;
mod statement;
mod tasks;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::backend::{Backend, on};
use crate::error::{OpenError, StoreError};
use crate::key_listener::KeyListener;
use crate::queue::command::{Change, Command, Reply};
use crate::records::recovery::Recovery;
use crate::records::settled::Settled;
use crate::settings::Settings;
use crate::stats::{Counters, Stats};

/// How long a caller waits for a decision or a lookup.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);

/// The durable state. It is cheap to clone. When the last clone is dropped, all queued commands are written and the
/// database is closed.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) backend: Backend,
    key_listener: Arc<KeyListener>,
}

impl From<Backend> for Store {
    fn from(backend: Backend) -> Self {
        Self {
            backend,
            key_listener: Arc::default(),
        }
    }
}

/// Opening, closing and health.
impl Store {
    /// Opens the store for a server. Takes the server lock (with `PostgreSQL`, the name of the node), migrates, begins
    /// a new epoch, and closes the holds of ended epochs as abandoned.
    pub fn open(settings: &Settings) -> Result<(Self, Recovery), OpenError> {
        let (backend, recovery) = Backend::open(settings)?;
        Ok((backend.into(), recovery))
    }

    /// Opens the store for a command, while a server may be running: for reads and administrative changes, without
    /// admission.
    pub fn attach(settings: &Settings) -> Result<Self, OpenError> {
        Ok(Backend::attach(settings)?.into())
    }

    /// Returns when everything that was queued before is durable.
    pub async fn flush(&self) -> Result<(), StoreError> {
        on!(self, backend => backend.flush().await)
    }

    /// Whether admissions can be decided and made durable: the writer and the disk answer within two seconds,
    /// commits succeed, and there is enough disk space.
    pub fn healthy(&self) -> bool {
        on!(self, backend => backend.healthy())
    }

    /// The current values of the counters.
    pub fn stats(&self) -> Stats {
        on!(self, backend => backend.stats())
    }

    /// The sums that this process has settled and committed, by model.
    pub fn settled(&self) -> Vec<Settled> {
        self.counters().settled.read()
    }

    pub(crate) fn counters(&self) -> &Counters {
        on!(self, backend => backend.counters())
    }

    /// Sends a change to the writer, and returns when it is durable.
    pub(crate) async fn change<T>(
        &self,
        change: impl FnOnce(Reply<T>) -> Change,
    ) -> Result<T, StoreError> {
        self.ask(|reply| Command::Change(change(reply))).await
    }

    /// Sends a command to the writer, and returns when the result is durable.
    pub(crate) async fn ask<T>(
        &self,
        command: impl FnOnce(Reply<T>) -> Command,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.backend.push(command(reply)).await?;
        let (value, durable) = answer.await.map_err(|_| StoreError::Unavailable)??;
        durable.wait().await.map_err(|_| StoreError::Unavailable)?;
        Ok(value)
    }
}

/// Awaits a lookup, and fails if it takes too long.
pub(crate) async fn found_in_time<T>(
    look: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let found = timeout(ANSWERED_WITHIN, look).await;
    found.unwrap_or(Err(StoreError::Unavailable))
}
