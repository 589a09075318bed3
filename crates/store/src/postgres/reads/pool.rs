//! Reads outside the ledger: a few connections, made when they are needed and again when they are lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio_postgres::Client;

use crate::error::StoreError;
use crate::postgres::connection::connect::{READ_MAX, Role, Target};
use crate::postgres::connection::errors::{Failed, Trouble};
use crate::postgres::node::health::{Health, PROBE_EVERY, PROBE_MAX, Part};

/// Connections for look-ups, which are short: many may be under way on one.
const LOOKUPS: usize = 2;
/// The database ends a read by itself; this is for a database that does not answer at all.
const ANSWER_MAX: Duration = Duration::from_secs(READ_MAX.as_secs() + 1);

/// Connections for reading.
pub(crate) struct Reads {
    runtime: tokio::runtime::Handle,
    lookups: [Arc<Slot>; LOOKUPS],
    next: AtomicUsize,
    /// For searches, which may take long.
    searches: Arc<Slot>,
}

/// One connection, made when it is needed and again when it is lost.
pub(crate) struct Slot {
    target: Arc<Target>,
    role: Role,
    client: Mutex<Option<Arc<Client>>>,
}

impl Reads {
    pub(crate) fn new(target: &Arc<Target>, runtime: tokio::runtime::Handle) -> Self {
        let slot = || Arc::new(Slot::new(target, Role::Reads));
        Self {
            runtime,
            lookups: std::array::from_fn(|_| slot()),
            next: AtomicUsize::new(0),
            searches: slot(),
        }
    }

    /// Tries the connections that find keys again and again, as long as the process lives.
    pub(crate) fn watch(&self, health: &Arc<Health>) {
        for (number, slot) in self.lookups.iter().enumerate() {
            let (slot, health) = (Arc::clone(slot), Arc::clone(health));
            self.runtime.spawn(async move {
                loop {
                    let asking =
                        slot.ask(&async |on: Arc<Client>| on.batch_execute("SELECT 1").await);
                    let asked = tokio::time::timeout(PROBE_MAX, asking).await;
                    let asked = asked.unwrap_or(Err(Failed::Silent.into()));
                    let is_news = health.note(Part::Lookup(number), asked.is_ok());
                    match asked {
                        Err(error) if is_news => {
                            tracing::error!(%error, "keys cannot be looked up");
                        }
                        _ => {}
                    }
                    tokio::time::sleep(PROBE_EVERY).await;
                }
            });
        }
    }

    /// Looks something up.
    pub(crate) async fn look_up<T, F>(
        &self,
        read: impl Fn(Arc<Client>) -> F + Send + Sync + 'static,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, tokio_postgres::Error>> + Send,
    {
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % LOOKUPS;
        let slot = self.lookups.get(turn).unwrap_or(&self.searches);
        self.run(Arc::clone(slot), read).await
    }

    /// Searches, without holding up look-ups.
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
        slot: Arc<Slot>,
        read: impl Fn(Arc<Client>) -> F + Send + Sync + 'static,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, tokio_postgres::Error>> + Send,
    {
        // On our own runtime, where connections and timers live, whoever asks.
        let asked = self.runtime.spawn(async move { slot.ask(&read).await });
        asked.await.map_err(|_| StoreError::Unavailable)?
    }
}

impl Slot {
    pub(crate) fn new(target: &Arc<Target>, role: Role) -> Self {
        Self {
            target: Arc::clone(target),
            role,
            client: Mutex::new(None),
        }
    }

    /// Asks within a time; once more when the connection was lost, so what is asked must bear to be
    /// said twice.
    pub(crate) async fn ask<T, F>(&self, read: &impl Fn(Arc<Client>) -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, tokio_postgres::Error>>,
    {
        let once = async {
            match self.read(read).await {
                // A connection may have died unseen.
                Err(failed) if failed.trouble() == Trouble::Gone => self.read(read).await,
                answer => answer,
            }
        };
        match tokio::time::timeout(ANSWER_MAX, once).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(Failed::Silent.into()),
        }
    }

    async fn read<T, F>(&self, read: &impl Fn(Arc<Client>) -> F) -> Result<T, Failed>
    where
        F: Future<Output = Result<T, tokio_postgres::Error>>,
    {
        let client = self.client().await?;
        let answer = read(Arc::clone(&client)).await.map_err(Failed::from);
        if matches!(&answer, Err(failed) if failed.trouble() == Trouble::Gone) {
            let mut present = self.client.lock().await;
            if present
                .as_ref()
                .is_some_and(|found| Arc::ptr_eq(found, &client))
            {
                *present = None;
            }
        }
        answer
    }

    async fn client(&self) -> Result<Arc<Client>, Failed> {
        let mut present = self.client.lock().await;
        if let Some(client) = &*present
            && !client.is_closed()
        {
            return Ok(Arc::clone(client));
        }
        let made = Arc::new(self.target.connect(self.role).await?);
        *present = Some(Arc::clone(&made));
        Ok(made)
    }
}
