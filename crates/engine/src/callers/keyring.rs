//! Finds API keys by their digest, and caches them for a few seconds.
//!
//! The cache only tells which key a secret belongs to. The ledger decides at each admission whether the key may still
//! spend. A change on this node takes effect at once; a change by another process takes effect when the cache entry
//! expires, or earlier (K2).
//!
//! Anybody can send any number of keys that do not exist. So only a few lookups of keys that were never found here
//! reach the store at a time. A key that was found before never waits behind them.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use store::{Digest, KeyHead, KeyId, StoreError};
use tokio::sync::{OnceCell, Semaphore, SemaphorePermit};

use crate::callers::limits::{Callers, KeyUsage};
use crate::callers::weak_value_map::WeakValueMap;
use crate::clock;

/// How long a key that was found is cached.
const FOUND_TTL: Duration = Duration::from_secs(5);
/// How long a key that was not found is refused without a lookup. A key that is created in the meantime works after
/// this time.
const UNKNOWN_TTL: Duration = Duration::from_secs(1);
/// How long a caller waits for the lookup.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);
/// The value of `changes` in an entry that must not be used again.
const OUTDATED: u64 = u64::MAX;
const SHARDS: usize = 16;
const SHARD_KEYS_MAX: usize = 4096;
const SHARD_UNKNOWN_MAX: usize = 1024;
/// The maximum numbers of running and of waiting lookups of keys that were never found here.
const UNSEEN_AT_ONCE: usize = 16;
const UNSEEN_WAITING_MAX: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyLookupError {
    /// The key is unknown, disabled or expired.
    NoSuchKey,
    /// The store did not answer. The client must not see this as a wrong key.
    Unavailable,
}

#[derive(Debug)]
pub(crate) struct Keyring {
    callers: Callers,
    shards: [Mutex<Shard>; SHARDS],
    unseen: UnseenKeyQueue,
    /// The number of key changes that this node has made. A lookup that began before the last change is not cached.
    changes: AtomicU64,
}

#[derive(Debug, Default)]
struct Shard {
    /// Keys that are in the store, including expired cache entries and disabled keys.
    known: HashMap<Digest, CachedKey>,
    /// Keys that are not in the store, each with the time of its lookup.
    unknown: HashMap<Digest, Instant>,
    queries: WeakValueMap<Digest, Query>,
}

/// The last key of a connection, which is nearly always its next key too. It is recognised without access to the shared
/// cache.
#[derive(Debug, Default)]
pub struct LastKey(Mutex<Option<CachedKey>>);

/// A key that was found, and the time of its lookup.
#[derive(Debug, Clone)]
struct CachedKey {
    digest: Digest,
    head: KeyHead,
    share: Arc<KeyUsage>,
    queried_at: Instant,
    /// The value of [`KeyUsage::changes`] when this key was read. If it is different now, the key has changed since.
    changes: u64,
}

impl CachedKey {
    /// The entry, if it is fresh and the key is live.
    fn if_fresh(&self) -> Option<Self> {
        let is_current =
            self.queried_at.elapsed() <= FOUND_TTL && self.share.changes() == self.changes;
        (is_current && is_live(&self.head)).then(|| self.clone())
    }
}

/// The lookup of one key. Concurrent requests with the same key share it.
#[derive(Debug)]
struct Query {
    is_known: bool,
    queried_at: Instant,
    /// The value of [`Keyring::changes`] before the lookup.
    changes: u64,
    found: OnceCell<Option<CachedKey>>,
}

enum CacheLookup {
    Live(CachedKey),
    Unknown,
    Query(Arc<Query>),
}

impl Keyring {
    pub(crate) fn new(callers: Callers) -> Self {
        Self {
            callers,
            shards: std::array::from_fn(|_| Mutex::default()),
            unseen: UnseenKeyQueue::new(),
            changes: AtomicU64::new(0),
        }
    }

    /// Makes the cache entries of a key outdated, because this node has changed the key.
    pub(crate) fn forget(&self, key: KeyId) {
        // The order matters. A lookup that has missed the first increment already holds the usage of the key, so the
        // second increment makes its cache entry outdated.
        self.changes.fetch_add(1, Ordering::SeqCst);
        self.callers.note_change(key);
    }

    pub(crate) fn callers(&self) -> &Callers {
        &self.callers
    }

    /// Finds the live key that a secret belongs to. `look_up` reads it from the store.
    pub(crate) async fn find<F>(
        &self,
        look_up: impl FnOnce(Digest) -> F,
        secret: &str,
        last: &LastKey,
    ) -> Result<(KeyHead, Arc<KeyUsage>), KeyLookupError>
    where
        F: Future<Output = Result<Option<KeyHead>, StoreError>>,
    {
        let digest = Digest::of(secret.as_bytes());
        let again = {
            let last = last.0.lock();
            let same = last.as_ref().filter(|known| known.digest == digest);
            same.and_then(CachedKey::if_fresh)
        };
        if let Some(known) = again {
            return Ok((known.head, known.share));
        }
        let known = match self.remembered(digest) {
            CacheLookup::Live(known) => known,
            CacheLookup::Unknown => return Err(KeyLookupError::NoSuchKey),
            // The entry is stale, or the key is disabled or expired. A new lookup lets a key that was enabled again
            // work at once.
            CacheLookup::Query(query) => self.run_query(look_up, digest, &query).await?,
        };
        *last.0.lock() = Some(known.clone());
        Ok((known.head, known.share))
    }

    /// The cache entry of a key, or the running lookup.
    fn remembered(&self, digest: Digest) -> CacheLookup {
        let mut shard = self.shard(&digest).lock();
        let known = shard.known.get(&digest);
        let is_known = known.is_some();
        if let Some(known) = known.and_then(CachedKey::if_fresh) {
            return CacheLookup::Live(known);
        }
        let refused = shard.unknown.get(&digest);
        if refused.is_some_and(|queried_at| queried_at.elapsed() <= UNKNOWN_TTL) {
            return CacheLookup::Unknown;
        }
        let changes = self.changes.load(Ordering::SeqCst);
        let new_query = || Query {
            is_known,
            queried_at: Instant::now(),
            changes,
            found: OnceCell::new(),
        };
        let query = shard.queries.get_or_insert(digest, new_query);
        if query.changes == changes {
            return CacheLookup::Query(query);
        }
        // The running lookup may have read the key before the last change, so it is not shared.
        shard.queries.forget(&digest);
        CacheLookup::Query(shard.queries.get_or_insert(digest, new_query))
    }

    async fn run_query<F>(
        &self,
        look_up: impl FnOnce(Digest) -> F,
        digest: Digest,
        query: &Query,
    ) -> Result<CachedKey, KeyLookupError>
    where
        F: Future<Output = Result<Option<KeyHead>, StoreError>>,
    {
        // Callers that share a failed lookup repeat it one after another. The timeout covers all of these lookups.
        let asking = query.found.get_or_try_init(async || {
            let _turn = if query.is_known {
                None
            } else {
                Some(self.unseen.enter().await?)
            };
            let found = look_up(digest).await?;
            Ok(self.learn(digest, query, found))
        });
        let found = tokio::time::timeout(LOOKUP_TIMEOUT, asking).await;
        match found.unwrap_or(Err(StoreError::Unavailable)) {
            Ok(Some(known)) if is_live(&known.head) => Ok(known.clone()),
            Ok(_) => Err(KeyLookupError::NoSuchKey),
            Err(error) => {
                tracing::warn!(%error, "key lookup failed");
                Err(KeyLookupError::Unavailable)
            }
        }
    }

    /// Caches the answer of the store. A failed lookup says nothing about the key and does not get here.
    fn learn(&self, digest: Digest, query: &Query, found: Option<KeyHead>) -> Option<CachedKey> {
        let queried_at = query.queried_at;
        let known = found.map(|head| {
            let share = self.callers.share_of(&head);
            CachedKey {
                digest,
                changes: share.changes(),
                share,
                head,
                queried_at,
            }
        });
        if self.changes.load(Ordering::SeqCst) != query.changes {
            // The key may have been read before the change. Requests that already wait for this lookup may use the key.
            // Later requests must not.
            return known.map(|known| CachedKey {
                changes: OUTDATED,
                ..known
            });
        }
        let mut shard = self.shard(&digest).lock();
        let Shard {
            known: keys,
            unknown,
            queries,
        } = &mut *shard;
        queries.forget(&digest);
        if let Some(known) = &known {
            unknown.remove(&digest);
            make_room(keys, SHARD_KEYS_MAX, |known| {
                known.queried_at.elapsed() <= FOUND_TTL
            });
            keys.insert(digest, known.clone());
        } else {
            keys.remove(&digest);
            make_room(unknown, SHARD_UNKNOWN_MAX, |queried_at| {
                queried_at.elapsed() <= UNKNOWN_TTL
            });
            unknown.insert(digest, queried_at);
        }
        known
    }

    fn shard(&self, digest: &Digest) -> &Mutex<Shard> {
        let first = digest.as_bytes().first().copied().unwrap_or(0);
        &self.shards[usize::from(first) % SHARDS]
    }
}

/// Makes room for one more entry by removing stale entries, or any entry if none is stale.
fn make_room<V>(
    entries: &mut HashMap<Digest, V>,
    entries_max: usize,
    is_fresh: impl Fn(&V) -> bool,
) {
    if entries.len() < entries_max {
        return;
    }
    entries.retain(|_, value| is_fresh(value));
    if entries.len() >= entries_max
        && let Some(any) = entries.keys().next().copied()
    {
        entries.remove(&any);
    }
}

/// The queue to the store for keys that were never found here.
#[derive(Debug)]
struct UnseenKeyQueue {
    turns: Semaphore,
    waiting: AtomicUsize,
}

impl UnseenKeyQueue {
    fn new() -> Self {
        Self {
            turns: Semaphore::new(UNSEEN_AT_ONCE),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Waits for a permit, unless too many requests are waiting.
    async fn enter(&self) -> Result<SemaphorePermit<'_>, StoreError> {
        /// Decrements the number of waiting requests, also if the waiting future is dropped.
        struct Waiting<'a>(&'a AtomicUsize);

        impl Drop for Waiting<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }

        if let Ok(turn) = self.turns.try_acquire() {
            return Ok(turn);
        }
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(&self.waiting);
        if before >= UNSEEN_WAITING_MAX {
            return Err(StoreError::Unavailable);
        }
        self.turns
            .acquire()
            .await
            .map_err(|_| StoreError::Unavailable)
    }
}

fn is_live(head: &KeyHead) -> bool {
    head.enabled && head.expires_at.is_none_or(|at| clock::now() < at)
}

#[cfg(test)]
mod tests;
