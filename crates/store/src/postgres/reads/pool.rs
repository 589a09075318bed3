//! Reads outside the ledger, on a few connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio_postgres::Client;

use crate::error::StoreError;
use crate::postgres::connection::connect::{READ_MAX, Role, Target};
use crate::postgres::connection::errors::{FailureKind, PgError};
use crate::postgres::node::health::{Component, Health, PROBE_EVERY, PROBE_MAX};

/// Connections for lookups, which are short. Many lookups share a connection.
const LOOKUPS: usize = 2;
/// The database ends a read at its own limit. This limit is for a database that does not answer at all.
const ANSWER_MAX: Duration = Duration::from_secs(READ_MAX.as_secs() + 1);

/// The connections for reads.
pub(crate) struct Reads {
    runtime: tokio::runtime::Handle,
    lookups: [Arc<SharedConnection>; LOOKUPS],
    next: AtomicUsize,
    /// For searches, which may take long.
    searches: Arc<SharedConnection>,
}

/// A connection that many requests share. It is opened when needed, and again when it is lost.
pub(crate) struct SharedConnection {
    target: Arc<Target>,
    role: Role,
    client: Mutex<Option<Arc<Client>>>,
}

impl Reads {
    pub(crate) fn new(target: &Arc<Target>, runtime: tokio::runtime::Handle) -> Self {
        let connection = || Arc::new(SharedConnection::new(target, Role::Reads));
        Self {
            runtime,
            lookups: std::array::from_fn(|_| connection()),
            next: AtomicUsize::new(0),
            searches: connection(),
        }
    }

    /// Probes the connections that look up keys, as long as the process lives.
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

    /// Runs a lookup.
    pub(crate) async fn look_up<T, F>(
        &self,
        read: impl Fn(Arc<Client>) -> F + Send + Sync + 'static,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, tokio_postgres::Error>> + Send,
    {
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % LOOKUPS;
        let connection = self.lookups.get(turn).unwrap_or(&self.searches);
        self.run(Arc::clone(connection), read).await
    }

    /// Runs a search, without delaying lookups.
    pub(crate) async fn search<T, F>(
        &self,
        read: impl Fn(Arc<Client>) -> F + Send + Sync + 'static,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, tokio_postgres::Error>> + Send,
    {
        self.run(Arc::clone(&self.searches), read).await
    }

    async fn run<T, F>(
        &self,
        connection: Arc<SharedConnection>,
        read: impl Fn(Arc<Client>) -> F + Send + Sync + 'static,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, tokio_postgres::Error>> + Send,
    {
        // On our own runtime, which has the connections and timers, whatever runtime the caller is on.
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

    /// Runs a query with a time limit. Retries once if the connection was lost, so it must be safe to run
    /// twice.
    pub(crate) async fn ask<T, F>(&self, read: &impl Fn(Arc<Client>) -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, tokio_postgres::Error>>,
    {
        let once = async {
            match self.read(read).await {
                // The connection may have been lost unnoticed.
                Err(failed) if failed.kind() == FailureKind::Disconnected => self.read(read).await,
                answer => answer,
            }
        };
        match tokio::time::timeout(ANSWER_MAX, once).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(PgError::NoAnswer.into()),
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
