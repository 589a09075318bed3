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
                    let probe = async |on: Arc<Client>| on.batch_execute("SELECT 1").await;
                    let asked = connection.ask_within(PROBE_MAX, &probe).await;
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
    /// A connection that has not answered in time is not used again, because the next query would wait for the rest of
    /// this one (S9).
    pub(crate) async fn ask<T, F>(&self, read: &impl Fn(Arc<Client>) -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, tokio_postgres::Error>>,
    {
        self.ask_within(self.role.read_max() + SILENCE_MAX, read)
            .await
    }

    /// Like [`Self::ask`], with another time limit.
    async fn ask_within<T, F>(
        &self,
        limit: Duration,
        read: &impl Fn(Arc<Client>) -> F,
    ) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, tokio_postgres::Error>>,
    {
        let used = parking_lot::Mutex::new(None);
        let once = async {
            match self.read(read, &used).await {
                // The connection may have been lost earlier without being noticed.
                Err(failed) if failed.kind() == FailureKind::Disconnected => {
                    self.read(read, &used).await
                }
                answer => answer,
            }
        };
        let answer = tokio::time::timeout(limit, once).await;
        if answer.is_err() {
            let silent = used.into_inner();
            if let Some(silent) = silent {
                self.forget(&silent).await;
            }
        }
        match (answer, self.role) {
            (Ok(Err(failed)), Role::Searches { time_max })
                if failed.kind() == FailureKind::Locked =>
            {
                Err(StoreError::TooSlow { limit: time_max })
            }
            (Ok(answer), _) => Ok(answer?),
            (Err(_), Role::Searches { time_max }) => Err(StoreError::TooSlow { limit: time_max }),
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

    /// Runs a query, and keeps the connection that it runs on in `used`.
    async fn read<T, F>(
        &self,
        read: &impl Fn(Arc<Client>) -> F,
        used: &parking_lot::Mutex<Option<Arc<Client>>>,
    ) -> Result<T, PgError>
    where
        F: Future<Output = Result<T, tokio_postgres::Error>>,
    {
        let client = self.client().await?;
        *used.lock() = Some(Arc::clone(&client));
        let answer = read(Arc::clone(&client)).await.map_err(PgError::from);
        if matches!(&answer, Err(failed) if failed.kind() == FailureKind::Disconnected) {
            self.forget(&client).await;
        }
        answer
    }

    /// Gives up a connection, unless another one has taken its place. Its running queries may still end normally.
    async fn forget(&self, client: &Arc<Client>) {
        let mut open_session = self.client.lock().await;
        if open_session
            .as_ref()
            .is_some_and(|found| Arc::ptr_eq(found, client))
        {
            *open_session = None;
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Server;

    /// S9: the rest of a read that has timed out must not delay the next one.
    #[tokio::test]
    async fn a_read_that_times_out_gives_up_its_connection() {
        let Ok(url) = std::env::var("TOLLGATE_TEST_POSTGRES") else {
            return;
        };
        let target = Arc::new(Target::of(&Server::at(url)).unwrap());
        let time_max = Duration::from_secs(60);
        for role in [Role::Reads, Role::Tasks, Role::Searches { time_max }] {
            let connection = SharedConnection::new(&target, role);
            let served_by = async |on: Arc<Client>| {
                let row = on.query_one("SELECT pg_backend_pid()", &[]).await?;
                row.try_get::<_, i32>(0)
            };
            let first = connection.ask(&served_by).await.unwrap();
            assert_eq!(connection.ask(&served_by).await.unwrap(), first, "{role:?}");
            // The connection exists, so nothing else runs until the time limit.
            tokio::time::pause();
            let silent = async |_| std::future::pending().await;
            let asked: Result<(), _> = connection.ask(&silent).await;
            tokio::time::resume();
            assert!(asked.is_err(), "{role:?}");
            let next = connection.ask(&served_by).await.unwrap();
            assert_ne!(next, first, "{role:?}");
        }
    }
}
