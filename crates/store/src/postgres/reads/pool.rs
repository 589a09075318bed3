//! Runs lookups, which calls wait for, on a few connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio_postgres::Client;

use crate::error::StoreError;
use crate::postgres::connection::connect::{Role, Target};
use crate::postgres::connection::errors::{FailureKind, PgError};
use crate::postgres::node::health::{Component, Health, PROBE_EVERY, PROBE_MAX};

/// The number of connections for lookups. Lookups are short, so many of them share a connection.
const LOOKUPS: usize = 2;
/// How much longer than a read's time limit we wait for its answer. The database itself ends the read at the limit.
const SILENCE_MAX: Duration = Duration::from_secs(1);

/// The connections for lookups.
pub(crate) struct Reads {
    runtime: tokio::runtime::Handle,
    lookups: [Arc<SharedConnection>; LOOKUPS],
    next: AtomicUsize,
}

/// A connection that many requests share. It is opened when needed, and again when it is lost.
pub(crate) struct SharedConnection {
    target: Arc<Target>,
    role: Role,
    client: Mutex<Option<Arc<Client>>>,
}

impl Reads {
    pub(crate) fn new(target: &Arc<Target>, runtime: tokio::runtime::Handle) -> Self {
        let connection = |_| Arc::new(SharedConnection::new(target, Role::Reads));
        Self {
            runtime,
            lookups: std::array::from_fn(connection),
            next: AtomicUsize::new(0),
        }
    }

    /// Probes the connections for lookups as long as the process lives.
    pub(crate) fn watch(&self, health: &Arc<Health>) {
        for (number, connection) in self.lookups.iter().enumerate() {
            let (connection, health) = (Arc::clone(connection), Arc::clone(health));
            self.runtime.spawn(async move {
                loop {
                    let asking =
                        connection.ask(&async |on: Arc<Client>| on.batch_execute("SELECT 1").await);
                    let asked = tokio::time::timeout(PROBE_MAX, asking).await;
                    let asked = asked.unwrap_or(Err(PgError::NoAnswer.into()));
                    let changed = health.note(Component::Lookup(number), asked.is_ok());
                    match asked {
                        Err(error) if changed => {
                            tracing::error!(%error, "keys cannot be looked up");
                        }
                        _ => {}
                    }
                    tokio::time::sleep(PROBE_EVERY).await;
                }
            });
        }
    }

    pub(crate) async fn look_up<T, F>(
        &self,
        read: impl Fn(Arc<Client>) -> F + Send + Sync + 'static,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, tokio_postgres::Error>> + Send,
    {
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % LOOKUPS;
        let connection = self.lookups.get(turn).map(Arc::clone);
        let connection = connection.ok_or(StoreError::Unavailable)?;
        // Runs on our own runtime, which owns the connections and timers, regardless of the caller's runtime.
        let asked = self
            .runtime
            .spawn(async move { connection.ask(&read).await });
        asked.await.map_err(|_| StoreError::Unavailable)?
    }
}

impl SharedConnection {
    pub(crate) fn new(target: &Arc<Target>, role: Role) -> Self {
        Self {
            target: Arc::clone(target),
            role,
            client: Mutex::new(None),
        }
    }

    /// Runs a query with a time limit. Retries once if the connection was lost, so the query must be safe to run twice.
    pub(crate) async fn ask<T, F>(&self, read: &impl Fn(Arc<Client>) -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, tokio_postgres::Error>>,
    {
        let once = async {
            match self.read(read).await {
                // The connection may have been lost earlier without being noticed.
                Err(failed) if failed.kind() == FailureKind::Disconnected => self.read(read).await,
                answer => answer,
            }
        };
        let answer = tokio::time::timeout(self.role.read_max() + SILENCE_MAX, once).await;
        match (answer, self.role) {
            (Ok(Err(failed)), Role::Searches { time_max })
                if failed.kind() == FailureKind::Locked =>
            {
                Err(StoreError::TooSlow { limit: time_max })
            }
            (Ok(answer), _) => Ok(answer?),
            (Err(_), Role::Searches { time_max }) => {
                // Drops the connection, so that the next search does not wait for the rest of this one.
                *self.client.lock().await = None;
                Err(StoreError::TooSlow { limit: time_max })
            }
            (Err(_), _) => Err(PgError::NoAnswer.into()),
        }
    }

    /// Ends the running read, because its caller is gone. The next request opens a new connection.
    pub(crate) async fn end(&self) {
        let Some(client) = self.client.lock().await.take() else {
            return;
        };
        if let Err(error) = self.target.cancel(&client).await {
            // If this fails, the server ends the read at its time limit.
            tracing::debug!(%error, "a search that nobody waits for could not be ended");
        }
    }

    async fn read<T, F>(&self, read: &impl Fn(Arc<Client>) -> F) -> Result<T, PgError>
    where
        F: Future<Output = Result<T, tokio_postgres::Error>>,
    {
        let client = self.client().await?;
        let answer = read(Arc::clone(&client)).await.map_err(PgError::from);
        if matches!(&answer, Err(failed) if failed.kind() == FailureKind::Disconnected) {
            let mut open_session = self.client.lock().await;
            if open_session
                .as_ref()
                .is_some_and(|found| Arc::ptr_eq(found, &client))
            {
                *open_session = None;
            }
        }
        answer
    }

    async fn client(&self) -> Result<Arc<Client>, PgError> {
        let mut open_session = self.client.lock().await;
        if let Some(client) = &*open_session
            && !client.is_closed()
        {
            return Ok(Arc::clone(client));
        }
        let made = Arc::new(self.target.connect(self.role).await?);
        *open_session = Some(Arc::clone(&made));
        Ok(made)
    }
}
