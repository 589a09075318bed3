//! Runs lists, searches and reports on connections of their own and on the journal's thread, so that lookups never wait
//! for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};
use tokio_postgres::Client;

use super::pool::SharedConnection;
use crate::error::StoreError;
use crate::postgres::connection::connect::{Role, Target};
use crate::settings::SEARCHES_WAITING_MAX;

/// The number of searches that run at a time, each with exclusive use of a connection.
const CONNECTIONS: usize = 3;

pub(crate) struct Searches {
    runtime: tokio::runtime::Handle,
    pool: Arc<Pool>,
}

struct Pool {
    /// The number of permits is the number of free connections.
    permits: Semaphore,
    free: Mutex<Vec<Arc<SharedConnection>>>,
    waiting: AtomicUsize,
}

impl Searches {
    pub(crate) fn new(
        target: &Arc<Target>,
        runtime: tokio::runtime::Handle,
        time_max: Duration,
    ) -> Self {
        let connection = |_| Arc::new(SharedConnection::new(target, Role::Searches { time_max }));
        Self {
            runtime,
            pool: Arc::new(Pool {
                permits: Semaphore::new(CONNECTIONS),
                free: Mutex::new((0..CONNECTIONS).map(connection).collect()),
                waiting: AtomicUsize::new(0),
            }),
        }
    }

    /// Runs a search. If the caller leaves, the search is skipped or ended. Each statement has a time limit, and so has
    /// the whole search.
    pub(crate) async fn run<T, F>(
        &self,
        read: impl Fn(Arc<Client>) -> F + Send + Sync + 'static,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, tokio_postgres::Error>> + Send,
    {
        let waits = Waiting::begin(&self.pool).ok_or(StoreError::Unavailable)?;
        let pool = Arc::clone(&self.pool);
        let (mut reply, answer) = oneshot::channel();
        self.runtime.spawn(async move {
            let permit = tokio::select! {
                biased;
                () = reply.closed() => return,
                permit = pool.permits.acquire() => permit,
            };
            drop(waits);
            // The pool is never closed.
            let permit = permit.ok();
            let Some(pooled) = permit.and_then(|permit| PooledConnection::take(&pool, permit))
            else {
                return;
            };
            let found = tokio::select! {
                biased;
                () = reply.closed() => None,
                found = pooled.connection.ask(&read) => Some(found),
            };
            let Some(found) = found else {
                pooled.connection.end().await;
                return;
            };
            drop(pooled);
            drop(reply.send(found));
        });
        answer.await.map_err(|_| StoreError::Unavailable)?
    }
}

/// Counts a search that waits for a connection, until it is dropped.
struct Waiting(Arc<Pool>);

impl Waiting {
    fn begin(pool: &Arc<Pool>) -> Option<Self> {
        let waiting = Self(Arc::clone(pool));
        let before = pool.waiting.fetch_add(1, Ordering::Relaxed);
        (before < SEARCHES_WAITING_MAX).then_some(waiting)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection that returns to the pool when it is dropped.
struct PooledConnection<'p> {
    pool: &'p Pool,
    connection: Arc<SharedConnection>,
    /// Dropped last, after the connection has returned to the pool.
    _permit: SemaphorePermit<'p>,
}

impl<'p> PooledConnection<'p> {
    fn take(pool: &'p Pool, permit: SemaphorePermit<'p>) -> Option<Self> {
        let connection = pool.free.lock().pop()?;
        Some(Self {
            pool,
            connection,
            _permit: permit,
        })
    }
}

impl Drop for PooledConnection<'_> {
    fn drop(&mut self) {
        self.pool.free.lock().push(Arc::clone(&self.connection));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Server;

    #[tokio::test]
    async fn a_search_whose_caller_has_left_waits_no_longer() {
        let target =
            Arc::new(Target::of(&Server::at("postgres://nobody@127.0.0.1:1/none")).unwrap());
        let runtime = tokio::runtime::Handle::current();
        let searches = Searches::new(&target, runtime, Duration::from_secs(1));
        let permits = u32::try_from(CONNECTIONS).unwrap();
        let all = searches.pool.permits.acquire_many(permits).await.unwrap();
        let waiting = || searches.pool.waiting.load(Ordering::Relaxed);
        let mut left = Box::pin(searches.run(async |_| Ok(())));
        assert!(futures_util::poll!(&mut left).is_pending());
        tokio::task::yield_now().await;
        assert_eq!(waiting(), 1);
        drop(left);
        tokio::task::yield_now().await;
        assert_eq!(waiting(), 0);
        drop(all);
    }

    /// Without the cancellation, the server would sleep until the time limit and block the connection.
    #[tokio::test]
    async fn a_search_whose_caller_has_left_is_ended_at_the_server() {
        let Ok(url) = std::env::var("TOLLGATE_TEST_POSTGRES") else {
            return;
        };
        let target = Arc::new(Target::of(&Server::at(url)).unwrap());
        let outside = target.connect(Role::Reads).await.unwrap();
        let running = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active'
            AND query = 'SELECT pg_sleep(300.0625)'";
        let running = async || {
            let row = outside.query_one(running, &[]).await.unwrap();
            row.get::<_, i64>(0)
        };
        let time_max = Duration::from_secs(300);
        let searches = Searches::new(&target, tokio::runtime::Handle::current(), time_max);
        let mut left = Box::pin(
            searches
                .run(async |on: Arc<Client>| on.batch_execute("SELECT pg_sleep(300.0625)").await),
        );
        assert!(futures_util::poll!(&mut left).is_pending());
        while running().await == 0 {
            tokio::task::yield_now().await;
        }
        drop(left);
        while running().await > 0 {
            tokio::task::yield_now().await;
        }
        let permits = u32::try_from(CONNECTIONS).unwrap();
        drop(searches.pool.permits.acquire_many(permits).await.unwrap());
        searches.run(async |_| Ok(())).await.unwrap();
    }
}
