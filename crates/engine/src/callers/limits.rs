//! Limits how much of this node one key and its wallet may use: requests in flight, memory for large bodies, disk space
//! for uploads, and token counts.
//!
//! The ledger limits what a key may spend. These limits keep one caller from crowding out all others, whether or not it
//! can pay.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ledger::{Bucket, UnixMs, Wait};
use parking_lot::Mutex;
use protocol::Failure;
use store::{KeyHead, KeyId, WalletId};
use tokio::sync::Semaphore;

use crate::callers::weak_value_map::WeakValueMap;
use crate::memory_budget::MemoryBudget;

/// The limits of one key and one wallet on this node.
#[derive(Debug, Clone, Copy)]
pub struct CallerLimits {
    /// The maximum number of requests in flight of one key.
    pub key_in_flight_max: usize,
    /// The maximum memory for large bodies of one key.
    pub key_bodies_bytes_max: usize,
    /// The maximum memory for large bodies of all keys of one wallet.
    pub wallet_bodies_bytes_max: usize,
    /// The maximum disk space for uploads of all keys of one wallet.
    pub wallet_uploads_bytes_max: usize,
    /// The maximum number of token counts and lists of voices per minute of one key, unless the key's own limit is
    /// lower.
    pub token_counts_per_minute: u32,
}

impl Default for CallerLimits {
    fn default() -> Self {
        Self {
            key_in_flight_max: 2_500,
            key_bodies_bytes_max: 128 << 20,
            wallet_bodies_bytes_max: 192 << 20,
            wallet_uploads_bytes_max: 2 << 30,
            token_counts_per_minute: 600,
        }
    }
}

/// The keys and wallets that have requests in flight or were recognised recently.
#[derive(Debug)]
pub(crate) struct Callers {
    limits: CallerLimits,
    small_bodies: MemoryBudget,
    large_bodies: MemoryBudget,
    keys: Mutex<WeakValueMap<KeyId, KeyUsage>>,
    wallets: Mutex<WeakValueMap<WalletId, WalletUsage>>,
}

/// How much of the node one key uses.
#[derive(Debug)]
pub(crate) struct KeyUsage {
    /// The number of times that this node has changed the key since this entry was created.
    changes: AtomicU64,
    in_flight: AtomicUsize,
    large_bodies: MemoryBudget,
    token_counts: Mutex<Bucket>,
    pub(super) wallet: Arc<WalletUsage>,
}

impl KeyUsage {
    pub(crate) fn large_bodies(&self) -> &MemoryBudget {
        &self.large_bodies
    }

    /// The turn of the key's wallet to list its tasks.
    pub(crate) fn task_lists(&self) -> &Semaphore {
        &self.wallet.task_lists
    }

    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }
}

#[derive(Debug)]
pub(super) struct WalletUsage {
    small_bodies: MemoryBudget,
    large_bodies: MemoryBudget,
    uploads: MemoryBudget,
    /// One permit: the wallet's lists of tasks are read one after the other.
    task_lists: Semaphore,
    pub(super) funds_seen: Mutex<Option<Instant>>,
}

impl Callers {
    /// Every body is also charged to the node's budget for small or for large bodies.
    pub(crate) fn new(
        limits: CallerLimits,
        small_bodies: MemoryBudget,
        large_bodies: MemoryBudget,
    ) -> Self {
        Self {
            limits,
            small_bodies,
            large_bodies,
            keys: Mutex::default(),
            wallets: Mutex::default(),
        }
    }

    /// The usage of a key. All users of a key share one value.
    pub(crate) fn share_of(&self, head: &KeyHead) -> Arc<KeyUsage> {
        self.keys.lock().get_or_insert(head.key, || {
            let wallet = self.wallet_share_of(head.wallet);
            let bytes_max = self.limits.key_bodies_bytes_max;
            KeyUsage {
                changes: AtomicU64::new(0),
                in_flight: AtomicUsize::new(0),
                large_bodies: wallet.large_bodies.part_of_caller(bytes_max),
                token_counts: Mutex::default(),
                wallet,
            }
        })
    }

    /// Records that this node has changed a key. A key that is not in use is not in the map and is not cached, so there
    /// is nothing to record.
    pub(super) fn note_change(&self, key: KeyId) {
        if let Some(share) = self.keys.lock().get(&key) {
            share.changes.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Takes one of the free requests (token counts and lists of voices) that a key may make per minute, or refuses it.
    pub(crate) fn take_free_request(&self, caller: &Caller, now: UnixMs) -> Result<(), Failure> {
        let limit = self.limits.token_counts_per_minute;
        let limit = caller.key.rpm_limit.unwrap_or(limit).min(limit);
        let taken = caller.share.token_counts.lock().take(1, limit, now);
        taken.map_err(|wait| {
            let message = "The key asks for more token counts and voices per minute than it may.";
            let failure = Failure::rate_limit_exceeded(message);
            match wait {
                Wait::Ms(ms) => failure.retry_after(Duration::from_millis(ms)),
                Wait::Never => failure.should_retry(false),
            }
        })
    }

    fn wallet_share_of(&self, wallet: WalletId) -> Arc<WalletUsage> {
        self.wallets.lock().get_or_insert(wallet, || WalletUsage {
            small_bodies: self
                .small_bodies
                .part_of_caller(self.limits.wallet_bodies_bytes_max),
            large_bodies: self
                .large_bodies
                .part_of_caller(self.limits.wallet_bodies_bytes_max),
            uploads: MemoryBudget::of_caller(self.limits.wallet_uploads_bytes_max),
            task_lists: Semaphore::new(1),
            funds_seen: Mutex::new(None),
        })
    }

    /// Counts one more request of a key, or refuses it.
    pub(crate) fn enter(&self, key: KeyHead, share: Arc<KeyUsage>) -> Result<Caller, Failure> {
        // The request is counted first, so that dropping the caller undoes the count after a refusal.
        let before = share.in_flight.fetch_add(1, Ordering::Relaxed);
        let caller = Caller { key, share };
        if before >= self.limits.key_in_flight_max {
            return Err(Failure::concurrency_limit_exceeded());
        }
        Ok(caller)
    }
}

/// A recognised caller. It counts as a request in flight of its key until it is dropped.
#[derive(Debug)]
pub struct Caller {
    pub key: KeyHead,
    pub(super) share: Arc<KeyUsage>,
}

impl Caller {
    /// The memory that small bodies of the caller's wallet may take: as much as its large bodies.
    pub fn small_bodies(&self) -> &MemoryBudget {
        &self.share.wallet.small_bodies
    }

    /// The disk space that uploads of the caller's wallet may take.
    pub fn uploads(&self) -> &MemoryBudget {
        &self.share.wallet.uploads
    }

    /// The memory that large bodies of this caller may take.
    pub fn large_bodies(&self) -> &MemoryBudget {
        self.share.large_bodies()
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.share.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_budget::LimitOwner;

    fn head() -> KeyHead {
        KeyHead {
            key: KeyId::random(),
            wallet: WalletId::random(),
            enabled: true,
            expires_at: None,
            rpm_limit: None,
            models: None,
        }
    }

    fn callers(limits: CallerLimits) -> Callers {
        let budget = MemoryBudget::new(1_000);
        Callers::new(limits, budget.clone(), budget)
    }

    fn enter(callers: &Callers, head: &KeyHead) -> Result<Caller, Failure> {
        callers.enter(head.clone(), callers.share_of(head))
    }

    #[test]
    fn a_key_has_a_bound_of_requests_and_gets_its_places_back() {
        let callers = callers(CallerLimits {
            key_in_flight_max: 2,
            ..CallerLimits::default()
        });
        let (one, other) = (head(), head());
        let first = enter(&callers, &one).unwrap();
        let _second = enter(&callers, &one).unwrap();
        for _ in 0..3 {
            let refused = enter(&callers, &one).unwrap_err();
            assert_eq!(refused.code, protocol::Code::ConcurrencyLimitExceeded);
        }
        assert!(enter(&callers, &other).is_ok());
        drop(first);
        assert!(enter(&callers, &one).is_ok());
    }

    #[test]
    fn a_key_has_a_bound_of_token_counts_and_may_have_a_smaller_one() {
        let callers = callers(CallerLimits {
            token_counts_per_minute: 3,
            ..CallerLimits::default()
        });
        let at = |ms| UnixMs::new(1_800_000_000_000 + ms);
        for (rpm_limit, allowed) in [(None, 3), (Some(100), 3), (Some(2), 2), (Some(0), 0)] {
            let head = KeyHead {
                rpm_limit,
                ..head()
            };
            let caller = enter(&callers, &head).unwrap();
            for _ in 0..allowed {
                callers.take_free_request(&caller, at(0)).unwrap();
            }
            let refused = callers.take_free_request(&caller, at(0)).unwrap_err();
            assert_eq!(refused.code, protocol::Code::RateLimitExceeded);
            let waits = refused.retry_after_s.map_or(0, i64::from);
            assert_eq!(waits > 0, allowed > 0, "{rpm_limit:?}");
            let later = callers.take_free_request(&caller, at(waits * 1_000));
            assert_eq!(later.is_ok(), allowed > 0, "{rpm_limit:?}");
        }
    }

    #[test]
    fn keys_of_one_wallet_share_its_memory() {
        let callers = callers(CallerLimits {
            key_bodies_bytes_max: 300,
            wallet_bodies_bytes_max: 400,
            ..CallerLimits::default()
        });
        let one = head();
        let sibling = KeyHead {
            key: KeyId::random(),
            ..one.clone()
        };
        let [one, sibling, other] = [one, sibling, head()].map(|it| enter(&callers, &it).unwrap());
        let mut share = one.large_bodies().share();
        assert_eq!(
            share.try_grow(301),
            Err(LimitOwner::Caller),
            "the key's limit"
        );
        assert_eq!(share.try_grow(300), Ok(()));
        let mut beside = sibling.large_bodies().share();
        assert_eq!(
            beside.try_grow(101),
            Err(LimitOwner::Caller),
            "the wallet's"
        );
        assert_eq!(beside.try_grow(100), Ok(()));
        assert!(other.large_bodies().take(300).is_some());
    }
}
