//! Tests of the keyring with a store whose lookups the test controls.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use protocol::Failure;
use store::{KeyId, WalletId};
use tokio::task::unconstrained;

use super::*;
use crate::callers::limits::CallerLimits;
use crate::memory_budget::MemoryBudget;

/// A store that answers lookups in order of arrival, when the test allows it.
#[derive(Default)]
struct SlowStore {
    keys: Mutex<HashMap<Digest, KeyHead>>,
    lookups: AtomicUsize,
    answered: AtomicUsize,
}

impl SlowStore {
    fn add(&self, secret: &str) {
        let head = KeyHead {
            key: KeyId::random(),
            wallet: WalletId::random(),
            enabled: true,
            expires_at: None,
            rpm_limit: None,
            models: None,
        };
        self.keys.lock().insert(Digest::of(secret.as_bytes()), head);
    }

    /// Allows this many further lookups to be answered.
    fn answer(&self, count: usize) {
        self.answered.fetch_add(count, Ordering::Relaxed);
    }

    async fn look_up(&self, digest: Digest) -> Result<Option<KeyHead>, StoreError> {
        let turn = self.lookups.fetch_add(1, Ordering::Relaxed);
        let is_answered = || turn < self.answered.load(Ordering::Relaxed);
        std::future::poll_fn(|_| {
            if is_answered() {
                Poll::Ready(Ok(self.keys.lock().get(&digest).cloned()))
            } else {
                Poll::Pending
            }
        })
        .await
    }
}

fn keyring() -> Keyring {
    Keyring::new(Callers::new(
        CallerLimits::default(),
        MemoryBudget::new(1),
        MemoryBudget::new(1),
    ))
}

async fn find(keyring: &Keyring, store: &SlowStore, secret: &str) -> Result<KeyId, KeyLookupError> {
    let look_up = |digest| store.look_up(digest);
    let found = keyring.find(look_up, secret, &LastKey::default()).await;
    found.map(|(head, _)| head.key)
}

fn lapse(keyring: &Keyring, secret: &str) {
    let digest = Digest::of(secret.as_bytes());
    let mut shard = keyring.shard(&digest).lock();
    let long_ago = Instant::now().checked_sub(FOUND_TTL + UNKNOWN_TTL).unwrap();
    if let Some(known) = shard.known.get_mut(&digest) {
        known.queried_at = long_ago;
    }
    if let Some(queried_at) = shard.unknown.get_mut(&digest) {
        *queried_at = long_ago;
    }
}

#[tokio::test]
async fn a_flood_of_unknown_keys_leaves_the_store_to_known_ones() {
    let (keyring, store) = (keyring(), SlowStore::default());
    store.add("good");
    store.add("new");
    store.answer(1);
    find(&keyring, &store, "good").await.unwrap();
    lapse(&keyring, "good");

    let secrets: Vec<String> = (0..5_000).map(|it| format!("stranger {it}")).collect();
    // Unconstrained, because this task polls more futures than the runtime's cooperative budget allows.
    let flood = secrets
        .iter()
        .map(|it| Box::pin(unconstrained(find(&keyring, &store, it))));
    let mut flood: Vec<_> = flood.collect();
    let cx = &mut Context::from_waker(Waker::noop());
    let refused = flood
        .iter_mut()
        .filter_map(|it| match it.as_mut().poll(cx) {
            Poll::Ready(found) => Some(found),
            Poll::Pending => None,
        });
    let refused: Vec<_> = refused.collect();
    assert!(
        refused
            .iter()
            .all(|it| *it == Err(KeyLookupError::Unavailable))
    );
    assert_eq!(refused.len(), 5_000 - UNSEEN_AT_ONCE - UNSEEN_WAITING_MAX);
    assert_eq!(store.lookups.load(Ordering::Relaxed), 1 + UNSEEN_AT_ONCE);

    // The lookup of a key that was found before waits only for lookups that have already reached the store.
    let mut good = pin!(unconstrained(find(&keyring, &store, "good")));
    assert!(good.as_mut().poll(cx).is_pending());
    store.answer(UNSEEN_AT_ONCE + 1);
    assert!(matches!(good.as_mut().poll(cx), Poll::Ready(Ok(_))));

    // Requests that are dropped while they wait free their slots.
    drop(flood);
    store.answer(1);
    assert!(find(&keyring, &store, "new").await.is_ok());
}

#[tokio::test]
async fn an_unknown_key_is_asked_for_once_a_second() {
    let (keyring, store) = (keyring(), SlowStore::default());
    store.answer(10);
    for _ in 0..5 {
        let found = find(&keyring, &store, "late").await;
        assert_eq!(found, Err(KeyLookupError::NoSuchKey));
    }
    assert_eq!(store.lookups.load(Ordering::Relaxed), 1);
    assert!(
        UNKNOWN_TTL <= Duration::from_secs(1),
        "a new key must work soon"
    );
    store.add("late");
    lapse(&keyring, "late");
    assert!(find(&keyring, &store, "late").await.is_ok());
    assert!(find(&keyring, &store, "late").await.is_ok());
    assert_eq!(store.lookups.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_look_up_that_failed_is_not_remembered() {
    let (keyring, store) = (keyring(), SlowStore::default());
    store.add("good");
    let fails = |_| std::future::ready(Err(StoreError::Unavailable));
    let failed = keyring.find(fails, "good", &LastKey::default()).await;
    assert_eq!(failed.unwrap_err(), KeyLookupError::Unavailable);
    store.answer(1);
    assert!(find(&keyring, &store, "good").await.is_ok());
}

#[tokio::test]
async fn a_dead_key_is_asked_for_each_time_and_lives_again_at_once() {
    let (keyring, store) = (keyring(), SlowStore::default());
    store.add("key");
    store.answer(10);
    let digest = Digest::of(b"key");
    let set = |enabled| store.keys.lock().get_mut(&digest).unwrap().enabled = enabled;
    set(false);
    for _ in 0..2 {
        let found = find(&keyring, &store, "key").await;
        assert_eq!(found, Err(KeyLookupError::NoSuchKey));
    }
    set(true);
    assert!(find(&keyring, &store, "key").await.is_ok());
    assert_eq!(store.lookups.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn a_flood_takes_a_bounded_memory_and_keeps_known_keys() {
    let (keyring, store) = (keyring(), SlowStore::default());
    store.add("good");
    store.answer(usize::MAX);
    find(&keyring, &store, "good").await.unwrap();
    for it in 0..2 * SHARDS * SHARD_UNKNOWN_MAX {
        let found = find(&keyring, &store, &format!("stranger {it}")).await;
        assert_eq!(found, Err(KeyLookupError::NoSuchKey));
    }
    for shard in &keyring.shards {
        assert!(shard.lock().unknown.len() <= SHARD_UNKNOWN_MAX);
    }
    // The flood may take so long that the known key is no longer fresh.
    let digest = Digest::of(b"good");
    if let Some(known) = keyring.shard(&digest).lock().known.get_mut(&digest) {
        known.queried_at = Instant::now();
    }
    let lookups = store.lookups.load(Ordering::Relaxed);
    find(&keyring, &store, "good").await.unwrap();
    assert_eq!(store.lookups.load(Ordering::Relaxed), lookups);
}

#[tokio::test]
async fn a_key_keeps_its_count_of_requests_when_it_is_asked_for_again() {
    let callers = CallerLimits {
        key_in_flight_max: 1,
        ..CallerLimits::default()
    };
    let keyring = Keyring::new(Callers::new(
        callers,
        MemoryBudget::new(1),
        MemoryBudget::new(1),
    ));
    let store = SlowStore::default();
    store.add("key");
    store.answer(2);
    let enter = async || -> Result<_, Failure> {
        let look_up = |digest| store.look_up(digest);
        let found = keyring.find(look_up, "key", &LastKey::default()).await;
        let (head, share) = found.unwrap();
        keyring.callers().enter(head, share)
    };
    let first = enter().await.unwrap();
    lapse(&keyring, "key");
    assert!(enter().await.is_err());
    drop(first);
    assert!(enter().await.is_ok());
}

fn disable(store: &SlowStore, secret: &str) -> KeyId {
    let mut keys = store.keys.lock();
    let head = keys.get_mut(&Digest::of(secret.as_bytes())).unwrap();
    head.enabled = false;
    head.key
}

#[tokio::test]
async fn a_key_that_this_node_has_changed_is_looked_up_again() {
    let (keyring, store) = (keyring(), SlowStore::default());
    store.add("key");
    store.add("other");
    store.answer(4);
    let last = LastKey::default();
    let look_up = |digest| store.look_up(digest);
    keyring.find(look_up, "key", &last).await.unwrap();
    find(&keyring, &store, "other").await.unwrap();
    let changed = disable(&store, "key");
    keyring.find(look_up, "key", &last).await.unwrap();
    keyring.forget(changed);
    let found = keyring.find(look_up, "key", &last).await;
    assert_eq!(found.unwrap_err(), KeyLookupError::NoSuchKey);
    // Other keys stay cached.
    find(&keyring, &store, "other").await.unwrap();
    assert_eq!(store.lookups.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn a_lookup_that_began_before_a_change_is_not_used_after_it() {
    let (keyring, store) = (keyring(), SlowStore::default());
    store.add("key");
    let cx = &mut Context::from_waker(Waker::noop());
    let last = LastKey::default();
    // The store reads the key before the change, but its answer arrives after the change.
    let head = store.keys.lock()[&Digest::of(b"key")].clone();
    let (answer, answered) = tokio::sync::oneshot::channel();
    let look_up = |_| async { answered.await.map_err(|_| StoreError::Unavailable) };
    let mut early = pin!(keyring.find(look_up, "key", &last));
    assert!(early.as_mut().poll(cx).is_pending());
    let changed = disable(&store, "key");
    keyring.forget(changed);
    store.answer(2);
    // A request that arrives after the change does not share the running lookup.
    let found = find(&keyring, &store, "key").await;
    assert_eq!(found.unwrap_err(), KeyLookupError::NoSuchKey);
    answer.send(Some(head)).unwrap();
    early.await.unwrap();
    let again = keyring.find(|digest| store.look_up(digest), "key", &last);
    assert_eq!(again.await.unwrap_err(), KeyLookupError::NoSuchKey);
}
