//! A map of shared values, each of which exists as long as it is in use.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Weak};

/// When the map has this many entries, unused entries are removed.
const ENTRIES_SWEPT_FROM: usize = 64;

/// Values that their users share. A value is dropped with its last user; its entry is removed later.
#[derive(Debug)]
pub(crate) struct WeakValueMap<K, V> {
    entries: HashMap<K, Weak<V>>,
    sweep_at: usize,
}

impl<K, V> Default for WeakValueMap<K, V> {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
            sweep_at: ENTRIES_SWEPT_FROM,
        }
    }
}

impl<K: Eq + Hash, V> WeakValueMap<K, V> {
    /// The value of `key` if it is in use, otherwise a new value.
    pub(crate) fn get_or_insert(&mut self, key: K, make: impl FnOnce() -> V) -> Arc<V> {
        if let Some(found) = self.entries.get(&key).and_then(Weak::upgrade) {
            return found;
        }
        if self.entries.len() >= self.sweep_at {
            self.entries.retain(|_, entry| entry.strong_count() > 0);
            self.sweep_at = ENTRIES_SWEPT_FROM.max(2 * self.entries.len());
        }
        let value = Arc::new(make());
        self.entries.insert(key, Arc::downgrade(&value));
        value
    }

    pub(crate) fn get(&self, key: &K) -> Option<Arc<V>> {
        self.entries.get(key).and_then(Weak::upgrade)
    }

    /// Removes the value of `key`. Its users keep it; the next user gets a new value.
    pub(crate) fn forget(&mut self, key: &K) {
        self.entries.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_forgotten_with_their_last_user() {
        let mut shares = WeakValueMap::default();
        let kept: Vec<Arc<usize>> = (0..10).map(|it| shares.get_or_insert(it, || it)).collect();
        for it in 10..5_000 {
            shares.get_or_insert(it, || it);
        }
        assert!(shares.entries.len() <= ENTRIES_SWEPT_FROM);
        let again = shares.get_or_insert(3, || unreachable!("it is in use"));
        assert!(Arc::ptr_eq(&again, &kept[3]));
        shares.forget(&3);
        assert!(!Arc::ptr_eq(&shares.get_or_insert(3, || 3), &kept[3]));
    }
}
