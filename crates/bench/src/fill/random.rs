//! Pseudo-random numbers that are the same in every run.

/// A random number generator (`SplitMix64`).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        let bound = bound.max(1) as u64;
        usize::try_from(self.next() % bound).unwrap_or(0)
    }

    /// A number below `bound`. Low numbers are more frequent: a quarter of all numbers are below a sixteenth of the
    /// bound.
    pub(super) fn skewed(&mut self, bound: usize) -> usize {
        let bound = bound.max(1) as u64;
        let share = u128::from(self.next() >> 32);
        let squared = (share * share) >> 32;
        usize::try_from((squared * u128::from(bound)) >> 32).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_numbers_are_more_frequent_and_none_is_too_large() {
        let mut random = Random::new(1);
        let numbers: Vec<usize> = (0..10_000).map(|_| random.skewed(1_600)).collect();
        assert!(numbers.iter().all(|number| *number < 1_600));
        let low = numbers.iter().filter(|number| **number < 100).count();
        assert!((2_300..2_700).contains(&low), "{low}");
        assert!(numbers.iter().any(|number| *number > 1_500));
    }
}
