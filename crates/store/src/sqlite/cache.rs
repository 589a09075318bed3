//! A bounded map that forgets what was not used lately.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

/// Two generations: what is used is young, and when the young are too many they become the old
/// ones and the old ones are forgotten. No list is kept, so a hit costs one look-up.
#[derive(Debug)]
pub(super) struct Generations<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    young_max: usize,
}

impl<K: Eq + Hash + Copy, V> Generations<K, V> {
    /// A map of about `max` values.
    pub(super) fn new(max: usize) -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
            young_max: (max / 2).max(1),
        }
    }

    pub(super) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        match self.young.entry(key) {
            Entry::Occupied(entry) => Some(entry.into_mut()),
            Entry::Vacant(entry) => self.old.remove(&key).map(|value| entry.insert(value)),
        }
    }

    pub(super) fn insert(&mut self, key: K, value: V) {
        self.old.remove(&key);
        self.young.insert(key, value);
    }

    /// Forgets, if there is too much. Only called between batches: a changed row must stay until
    /// it is written.
    pub(super) fn age(&mut self) {
        if self.young.len() > self.young_max {
            self.old = std::mem::take(&mut self.young);
        }
    }

    pub(super) fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_survives_and_the_rest_is_forgotten() {
        let mut map = Generations::new(4);
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
