//! A map with a maximum size that drops its oldest entries.

use std::collections::{HashMap, VecDeque};

/// Values by id, in insertion order.
#[derive(Debug)]
pub(crate) struct BoundedMap<T> {
    len_max: usize,
    /// Oldest first.
    values: VecDeque<(String, T)>,
    /// The number of dropped values, which is also the sequence number of the oldest value in the map.
    dropped: u64,
    numbers: HashMap<String, u64>,
}

impl<T> BoundedMap<T> {
    pub(crate) fn new(len_max: usize) -> Self {
        Self {
            len_max,
            values: VecDeque::new(),
            dropped: 0,
            numbers: HashMap::new(),
        }
    }

    /// Adds a value. If the id already exists, lookups return the new value.
    pub(crate) fn add(&mut self, id: &str, value: T) {
        while self.values.len() >= self.len_max {
            self.take_oldest();
        }
        let number = self.dropped + self.values.len() as u64;
        self.numbers.insert(id.to_owned(), number);
        self.values.push_back((id.to_owned(), value));
    }

    pub(crate) fn get(&self, id: &str) -> Option<&T> {
        let index = self.index(id)?;
        self.values.get(index).map(|(_, value)| value)
    }

    pub(crate) fn get_mut(&mut self, id: &str) -> Option<&mut T> {
        let index = self.index(id)?;
        self.values.get_mut(index).map(|(_, value)| value)
    }

    /// All values, oldest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.values.iter().map(|(_, value)| value)
    }

    fn index(&self, id: &str) -> Option<usize> {
        let number = self.numbers.get(id)?.checked_sub(self.dropped)?;
        usize::try_from(number).ok()
    }

    fn take_oldest(&mut self) {
        if let Some((id, _)) = self.values.pop_front() {
            if self.numbers.get(&id) == Some(&self.dropped) {
                self.numbers.remove(&id);
            }
            self.dropped += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_and_found() {
        let mut shelf = BoundedMap::new(3);
        for (id, value) in [("a", 1), ("b", 2), ("a", 3), ("c", 4)] {
            shelf.add(id, value);
        }
        // Dropping the older of the two values with id `a` leaves the newer one findable.
        assert_eq!(shelf.iter().copied().collect::<Vec<_>>(), [2, 3, 4]);
        assert_eq!((shelf.get("a"), shelf.get("b")), (Some(&3), Some(&2)));
        *shelf.get_mut("c").unwrap() = 5;
        shelf.add("d", 6);
        shelf.add("e", 7);
        assert_eq!((shelf.get("a"), shelf.get("b")), (None, None));
        assert_eq!((shelf.get("c"), shelf.get("e")), (Some(&5), Some(&7)));
        assert_eq!(shelf.numbers.len(), 3);
    }
}
