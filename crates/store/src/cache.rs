//! A bounded map that drops values that were not used recently, and a fast hash function for our own ids.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// A map whose keys are ids that we made ourselves (counters and random characters) or names in the operator's
/// configuration. Callers cannot choose keys that collide, so the hash function need not resist attacks.
pub(crate) type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// A set of ids, with the same hash function.
pub(crate) type IdSet<K> = HashSet<K, BuildHasherDefault<IdHasher>>;

#[derive(Debug, Default)]
pub(crate) struct IdHasher(u64);

/// 2^64 divided by the golden ratio. Its multiples are spread evenly.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let bytes = rest.iter().map(|byte| u64::from(*byte));
            self.write_u64(bytes.fold(0, |word, byte| word << 8 | byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        // The low half of the product depends only on the low bits of the word, and the high half mostly on the high
        // bits. Consecutive ids may differ in either, so both halves are combined.
        let mixed = self.0 ^ word;
        let high = (u128::from(mixed) * u128::from(SPREAD)) >> 64;
        self.0 = mixed.wrapping_mul(SPREAD) ^ u64::try_from(high).unwrap_or(0);
    }

    fn write_i64(&mut self, word: i64) {
        self.write_u64(word.cast_unsigned());
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

/// A map of two generations. Used values move to the young generation. When the young generation is full, it replaces
/// the old generation, whose values are dropped. A hit costs one lookup, because there is no list to maintain.
#[derive(Debug)]
pub(crate) struct GenerationalCache<K, V> {
    young: IdMap<K, V>,
    old: IdMap<K, V>,
    young_max: usize,
}

impl<K: Eq + Hash + Copy, V> GenerationalCache<K, V> {
    /// A map for about `max` values.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            young: IdMap::default(),
            old: IdMap::default(),
            young_max: (max / 2).max(1),
        }
    }

    pub(crate) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        match self.young.entry(key) {
            Entry::Occupied(entry) => Some(entry.into_mut()),
            Entry::Vacant(entry) => self.old.remove(&key).map(|value| entry.insert(value)),
        }
    }

    /// Reads a value without counting it as used.
    pub(crate) fn peek(&self, key: K) -> Option<&V> {
        self.young.get(&key).or_else(|| self.old.get(&key))
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        self.old.remove(&key);
        self.young.insert(key, value);
    }

    /// Drops the old generation if there are too many values. Only called between batches, because a changed
    /// row must stay until it is written.
    pub(crate) fn age(&mut self) {
        if self.young.len() > self.young_max {
            self.old = std::mem::take(&mut self.young);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::ids::KeyId;

    #[test]
    fn neighbours_and_lookalikes_hash_apart() {
        fn hash(id: impl Hash) -> u64 {
            let mut hasher = IdHasher::default();
            id.hash(&mut hasher);
            hasher.finish()
        }
        let text = |id: String| hash(KeyId::parse(&id).unwrap());
        let kinds: [&dyn Fn(i64) -> u64; 4] = [
            &|n| hash((7 << 40) + n),
            &|n| hash(n << 40),
            &|n| text(format!("key_{n:016}")),
            &|n| text(format!("key_{n:0<16}")),
        ];
        for (kind, hash) in kinds.iter().enumerate() {
            // A hash map takes the bucket from the low bits and the tag from the high bits.
            for bits in [0, 57] {
                let places: HashSet<u64> = (100..228).map(|n| (hash(n) >> bits) & 0x7f).collect();
                assert!(places.len() > 60, "{kind}: {} of 128", places.len());
            }
        }
    }

    #[test]
    fn what_is_used_survives_and_the_rest_is_forgotten() {
        let mut map = GenerationalCache::new(4);
        for key in 0..3 {
            map.insert(key, key);
        }
        map.age();
        assert_eq!(map.get_mut(1), Some(&mut 1));
        for key in 3..5 {
            map.insert(key, key);
        }
        map.age();
        assert_eq!(
            [0, 1, 2, 3, 4].map(|key| map.get_mut(key).is_some()),
            [false, true, false, true, true]
        );
        map.clear();
        assert_eq!(map.get_mut(1), None);
    }
}
