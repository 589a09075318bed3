//! Who is calling: API keys found by their digest, remembered for a few seconds.
//!
//! The memory only answers "whose key is this". Whether the key may still spend is decided by
//! the ledger at each admission; reads see a revoked key at the latest when its memory ends (K2).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use store::{Digest, KeyHead, Store, StoreError};
use tokio::sync::OnceCell;

use crate::clock;

/// How long a found key is believed.
const BELIEF: Duration = Duration::from_secs(5);
/// How long a caller waits to be recognised.
const ASKED_WITHIN: Duration = Duration::from_secs(5);
const SHARDS: usize = 16;
const SHARD_KEYS_MAX: usize = 4096;

/// Why nobody is calling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unrecognised {
    /// Unknown, disabled or expired.
    NoSuchKey,
    /// The store could not be asked; never told as a wrong key.
    Unavailable,
}

/// Finds callers by their secret.
#[derive(Debug)]
pub(crate) struct Keyring {
    shards: [Mutex<HashMap<Digest, Arc<Memory>>>; SHARDS],
}

/// The key that came last on a connection, which is nearly always the next one too: who shows it again
/// is known without a look into the memory that all share.
#[derive(Debug, Default)]
pub struct LastKey(Mutex<Option<Known>>);

/// A key that was found, and when it was asked for.
#[derive(Debug, Clone, Copy)]
struct Known {
    digest: Digest,
    head: KeyHead,
    asked: Instant,
}

impl Known {
    fn is_believed(&self) -> bool {
        self.asked.elapsed() <= BELIEF
    }
}

/// One key's lookup. Concurrent callers of one key share the query in flight.
#[derive(Debug)]
struct Memory {
    asked: Instant,
    found: OnceCell<Option<KeyHead>>,
}

impl Keyring {
    pub(crate) fn new() -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::new(HashMap::new())),
        }
    }

    /// The live key behind a secret.
    pub(crate) async fn find(
        &self,
        store: &Store,
        secret: &str,
        last: &LastKey,
    ) -> Result<KeyHead, Unrecognised> {
        let digest = Digest::of(secret.as_bytes());
        let known = *last.0.lock();
        let again = known.filter(|known| known.digest == digest && known.is_believed());
        let known = match again {
            Some(known) => Some(known),
            None => self.remembered(digest).filter(Known::is_believed),
        };
        if let Some(known) = known.filter(|known| is_live(&known.head)) {
            if again.is_none() {
                *last.0.lock() = Some(known);
            }
            return Ok(known.head);
        }
        // Nothing believed, or a dead key: a key that was enabled again works at once.
        self.ask(store, digest).await
    }

    fn remembered(&self, digest: Digest) -> Option<Known> {
        let shard = self.shard(&digest).lock();
        let memory = shard.get(&digest)?;
        let head = *memory.found.get()?;
        head.map(|head| Known {
            digest,
            head,
            asked: memory.asked,
        })
    }

    async fn ask(&self, store: &Store, digest: Digest) -> Result<KeyHead, Unrecognised> {
        let memory = self.begin(&digest);
        // Who joins a query that fails asks again, one after the other: the time is for all of it.
        let asking = memory
            .found
            .get_or_try_init(async || -> Result<_, StoreError> {
                store.key_by_digest(&digest).await
            });
        let found = tokio::time::timeout(ASKED_WITHIN, asking).await;
        match found.unwrap_or(Err(StoreError::Unavailable)) {
            Ok(Some(head)) if is_live(head) => Ok(*head),
            Ok(_) => {
                self.forget(&digest, &memory);
                Err(Unrecognised::NoSuchKey)
            }
            Err(error) => {
                self.forget(&digest, &memory);
                tracing::warn!(%error, "key lookup failed");
                Err(Unrecognised::Unavailable)
            }
        }
    }

    /// Joins the query in flight, or starts one.
    fn begin(&self, digest: &Digest) -> Arc<Memory> {
        let mut shard = self.shard(digest).lock();
        if let Some(memory) = shard.get(digest)
            && !memory.found.initialized()
            && memory.asked.elapsed() <= BELIEF
        {
            return Arc::clone(memory);
        }
        if shard.len() >= SHARD_KEYS_MAX {
            shard.retain(|_, memory| memory.asked.elapsed() <= BELIEF);
            if shard.len() >= SHARD_KEYS_MAX {
                shard.clear();
            }
        }
        let memory = Arc::new(Memory {
            asked: Instant::now(),
            found: OnceCell::new(),
        });
        shard.insert(*digest, Arc::clone(&memory));
        memory
    }

    /// Strangers' keys take no memory.
    fn forget(&self, digest: &Digest, memory: &Arc<Memory>) {
        let mut shard = self.shard(digest).lock();
        if shard
            .get(digest)
            .is_some_and(|current| Arc::ptr_eq(current, memory))
        {
            shard.remove(digest);
        }
    }

    fn shard(&self, digest: &Digest) -> &Mutex<HashMap<Digest, Arc<Memory>>> {
        let first = digest.as_bytes().first().copied().unwrap_or(0);
        &self.shards[usize::from(first) % SHARDS]
    }
}

fn is_live(head: &KeyHead) -> bool {
    head.enabled && head.expires_at.is_none_or(|at| clock::now() < at)
}
