//! Who is calling: API keys found by their digest, remembered for a few seconds.
//!
//! The memory only answers "whose key is this". Whether the key may still spend is decided by
//! the ledger at each admission; reads see a revoked key at the latest when its memory ends (K2).
//!
//! Anybody can send keys that do not exist, as many as the network carries. Few of these look-ups
//! reach the store at one time, so that a key which has been seen before never waits behind them.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use store::{Digest, KeyHead, StoreError};
use tokio::sync::{OnceCell, Semaphore, SemaphorePermit};

use crate::callers::limits::{Callers, KeyUsage};
use crate::callers::shared_values::SharedValues;
use crate::clock;

/// How long a found key is believed.
const FOUND_TTL: Duration = Duration::from_secs(5);
/// How long a key that was not found is refused without a look: a key that is created afterwards
/// works when this is over.
const UNKNOWN_TTL: Duration = Duration::from_secs(1);
/// How long a caller waits to be recognised.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);
const SHARDS: usize = 16;
const SHARD_KEYS_MAX: usize = 4096;
const SHARD_UNKNOWN_MAX: usize = 1024;
/// Look-ups of keys that were never found here: at one time in the store, and waiting for it.
const UNSEEN_AT_ONCE: usize = 16;
const UNSEEN_WAITING_MAX: usize = 4096;

/// Why nobody is calling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyLookupError {
    /// Unknown, disabled or expired.
    NoSuchKey,
    /// The store could not be asked; never told as a wrong key.
    Unavailable,
}

/// Finds callers by their secret.
#[derive(Debug)]
pub(crate) struct Keyring {
    callers: Callers,
    shards: [Mutex<Shard>; SHARDS],
    unseen: UnseenKeyQueue,
}

#[derive(Debug, Default)]
struct Shard {
    /// Keys that the store has, also when they are no longer believed or not live.
    known: HashMap<Digest, CachedKey>,
    /// Keys that the store does not have, and when it was asked.
    unknown: HashMap<Digest, Instant>,
    queries: SharedValues<Digest, Query>,
}

/// The key that came last on a connection, which is nearly always the next one too: who shows it again
/// is known without a look into the memory that all share.
#[derive(Debug, Default)]
pub struct LastKey(Mutex<Option<CachedKey>>);

/// A key that was found, and when it was asked for.
#[derive(Debug, Clone)]
struct CachedKey {
    digest: Digest,
    head: KeyHead,
    share: Arc<KeyUsage>,
    asked: Instant,
}

impl CachedKey {
    /// The key, if it is live and was asked for a moment ago.
    fn if_fresh(&self) -> Option<Self> {
        (self.asked.elapsed() <= FOUND_TTL && is_live(&self.head)).then(|| self.clone())
    }
}

/// One key's look-up. Concurrent callers of one key share the query in flight.
#[derive(Debug)]
struct Query {
    is_known: bool,
    asked: Instant,
    found: OnceCell<Option<CachedKey>>,
}

/// What a connection's key is in the memory.
enum CacheLookup {
    Live(CachedKey),
    Unknown,
    Asked(Arc<Query>),
}

impl Keyring {
    pub(crate) fn new(callers: Callers) -> Self {
        Self {
            callers,
            shards: std::array::from_fn(|_| Mutex::default()),
            unseen: UnseenKeyQueue::new(),
        }
    }

    /// The keys and wallets of this node.
    pub(crate) fn callers(&self) -> &Callers {
        &self.callers
    }

    /// The live key behind a secret, which `look_up` finds in the store.
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
            // Nothing believed, or a dead key: a key that was enabled again works at once.
            CacheLookup::Asked(query) => self.ask(look_up, digest, &query).await?,
        };
        *last.0.lock() = Some(known.clone());
        Ok((known.head, known.share))
    }

    /// What is known of a key, or the query that will tell.
    fn remembered(&self, digest: Digest) -> CacheLookup {
        let mut shard = self.shard(&digest).lock();
        let known = shard.known.get(&digest);
        let is_known = known.is_some();
        if let Some(known) = known.and_then(CachedKey::if_fresh) {
            return CacheLookup::Live(known);
        }
        let refused = shard.unknown.get(&digest);
        if refused.is_some_and(|asked| asked.elapsed() <= UNKNOWN_TTL) {
            return CacheLookup::Unknown;
        }
        CacheLookup::Asked(shard.queries.get_or_insert(digest, || Query {
            is_known,
            asked: Instant::now(),
            found: OnceCell::new(),
        }))
    }

    async fn ask<F>(
        &self,
        look_up: impl FnOnce(Digest) -> F,
        digest: Digest,
        query: &Query,
    ) -> Result<CachedKey, KeyLookupError>
    where
        F: Future<Output = Result<Option<KeyHead>, StoreError>>,
    {
        // Who joins a query that fails asks again, one after the other: the time is for all of it.
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

    /// Keeps what the store has answered. A look-up that failed comes not here: it says nothing of the key.
    fn learn(&self, digest: Digest, query: &Query, found: Option<KeyHead>) -> Option<CachedKey> {
        let asked = query.asked;
        let known = found.map(|head| CachedKey {
            digest,
            head,
            share: self.callers.share_of(&head),
            asked,
        });
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
                known.asked.elapsed() <= FOUND_TTL
            });
            keys.insert(digest, known.clone());
        } else {
            keys.remove(&digest);
            make_room(unknown, SHARD_UNKNOWN_MAX, |asked| {
                asked.elapsed() <= UNKNOWN_TTL
            });
            unknown.insert(digest, asked);
        }
        known
    }

    fn shard(&self, digest: &Digest) -> &Mutex<Shard> {
        let first = digest.as_bytes().first().copied().unwrap_or(0);
        &self.shards[usize::from(first) % SHARDS]
    }
}

/// Makes room for one more entry: what is stale goes first, then any one.
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

/// The way to the store for keys that were never found here.
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

    /// Waits for a turn, unless too many wait already.
    async fn enter(&self) -> Result<SemaphorePermit<'_>, StoreError> {
        /// Also counts down when the one who waits has gone.
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
