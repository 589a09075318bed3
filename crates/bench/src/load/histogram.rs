//! A histogram of latencies, precise to one percent.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of buckets per power of two.
const STEPS: u64 = 128;
const STEPS_BITS: u32 = STEPS.trailing_zeros();
/// Values above this maximum, about a minute, are counted as the maximum.
const VALUE_MAX: u64 = (1 << 36) - 1;

/// Counts values in nanoseconds. All connections share it.
pub(crate) struct Histogram {
    buckets: Box<[AtomicU64]>,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Self {
            buckets: (0..=bucket(VALUE_MAX)).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    pub(crate) fn record(&self, value: u64) {
        self.buckets[bucket(value)].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count(&self) -> u64 {
        self.buckets
            .iter()
            .map(|bucket| bucket.load(Ordering::Relaxed))
            .sum()
    }

    pub(crate) fn clear(&self) {
        for bucket in &self.buckets {
            bucket.store(0, Ordering::Relaxed);
        }
    }

    /// The value that `permille` out of a thousand values do not exceed; `None` if nothing was
    /// recorded.
    pub(crate) fn quantile(&self, permille: u64) -> Option<u64> {
        let rank = (self.count() * permille).div_ceil(1000).max(1);
        let mut seen = 0;
        for (index, bucket) in self.buckets.iter().enumerate() {
            seen += bucket.load(Ordering::Relaxed);
            if seen >= rank {
                return Some(middle(index as u64));
            }
        }
        None
    }
}

fn bucket(value: u64) -> usize {
    let value = value.min(VALUE_MAX);
    let Some(power) = value.checked_ilog2().filter(|&power| power >= STEPS_BITS) else {
        return low(value);
    };
    let shift = power - STEPS_BITS;
    low(u64::from(shift + 1) * STEPS + (value >> shift) - STEPS)
}

fn low(index: u64) -> usize {
    usize::try_from(index).unwrap_or(usize::MAX)
}

fn middle(index: u64) -> u64 {
    match (index / STEPS).checked_sub(1) {
        None => index,
        Some(shift) => {
            let start = (STEPS + index % STEPS) << shift;
            start + (1 << shift) / 2
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantiles_of_a_known_row() {
        let histogram = Histogram::new();
        assert_eq!(histogram.quantile(500), None);
        (1..=100).for_each(|value| histogram.record(value));
        for (permille, value) in [(0, 1), (500, 50), (990, 99), (1000, 100)] {
            assert_eq!(histogram.quantile(permille), Some(value));
        }
        assert_eq!(histogram.count(), 100);
        histogram.clear();
        assert_eq!(histogram.quantile(500), None);
    }

    #[test]
    fn values_beyond_the_end_are_counted_in_the_last_bucket() {
        let histogram = Histogram::new();
        histogram.record(u64::MAX);
        assert!(histogram.quantile(500) > Some(VALUE_MAX / 128 * 127));
    }

    proptest! {
        #[test]
        fn a_value_is_kept_within_one_percent(value in 0..VALUE_MAX) {
            let kept = middle(bucket(value) as u64);
            prop_assert!(kept.abs_diff(value) * 100 <= value, "{value} became {kept}");
        }

        #[test]
        fn buckets_follow_the_order_of_values(value in 0..VALUE_MAX) {
            prop_assert!(bucket(value) <= bucket(value + 1));
            prop_assert!(bucket(value + 1) <= bucket(value) + 1);
        }
    }
}
