//! A histogram of durations, with buckets whose width grows with the duration.
//!
//! Every power of two is divided into sixteen buckets, so the width of a bucket is at most a sixteenth of its
//! durations. A percentile is reported as the middle of its bucket, which differs from the true value by at most one
//! part in 32.

use std::cmp::Ordering;

use super::varint;

/// Each power of two is divided into two to the power of this many buckets.
const SUB_BITS: u32 = 4;
/// Up to this many buckets are merged one by one. The calls of one key within a batch have only a few buckets, and
/// allocating a new list for each merge would be most of the work.
const FEW_BUCKETS: usize = 4;

/// Counts of durations in microseconds. Empty buckets take no space.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Buckets with their counts, in ascending order.
    counts: Vec<(u16, u64)>,
}

impl Histogram {
    pub(crate) fn add(&mut self, micros: u64) {
        self.add_count(bucket_of(micros), 1);
    }

    fn add_count(&mut self, bucket: u16, count: u64) {
        match self.counts.binary_search_by_key(&bucket, |(at, _)| *at) {
            Ok(found) => {
                if let Some((_, sum)) = self.counts.get_mut(found) {
                    *sum = sum.saturating_add(count);
                }
            }
            Err(place) => self.counts.insert(place, (bucket, count)),
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        if self.counts.is_empty() {
            self.counts.clone_from(&other.counts);
        } else if other.counts.len() <= FEW_BUCKETS {
            for (bucket, count) in &other.counts {
                self.add_count(*bucket, *count);
            }
        } else {
            self.merge_counts(&other.counts);
        }
    }

    /// Adds counts that are ordered by bucket. Reads both lists once, because searching for each bucket costs more if
    /// there are many.
    fn merge_counts(&mut self, other: &[(u16, u64)]) {
        let mut merged = Vec::with_capacity(self.counts.len() + other.len());
        let (mut ours, mut others) = (&*self.counts, other);
        while let ([our, our_rest @ ..], [their, their_rest @ ..]) = (ours, others) {
            match our.0.cmp(&their.0) {
                Ordering::Less => {
                    merged.push(*our);
                    ours = our_rest;
                }
                Ordering::Greater => {
                    merged.push(*their);
                    others = their_rest;
                }
                Ordering::Equal => {
                    merged.push((our.0, our.1.saturating_add(their.1)));
                    (ours, others) = (our_rest, their_rest);
                }
            }
        }
        merged.extend_from_slice(ours);
        merged.extend_from_slice(others);
        self.counts = merged;
    }

    /// The number of counted durations.
    pub fn count(&self) -> u64 {
        let counts = self.counts.iter().map(|(_, count)| *count);
        counts.fold(0, u64::saturating_add)
    }

    /// The duration, in microseconds, that `of_hundred` per cent of the durations do not exceed. `None` if nothing was
    /// counted.
    pub fn percentile(&self, of_hundred: u8) -> Option<u64> {
        let all = u128::from(self.count());
        let rank = (all * u128::from(of_hundred.min(100))).div_ceil(100).max(1);
        let mut seen = 0_u128;
        for (bucket, count) in &self.counts {
            seen += u128::from(*count);
            if seen >= rank {
                return Some(middle_of(*bucket));
            }
        }
        None
    }

    pub(super) fn encode(&self, to: &mut Vec<u8>) {
        varint::put(to, self.counts.len() as u64);
        let mut last = 0;
        for (bucket, count) in &self.counts {
            varint::put(to, u64::from(bucket - last));
            varint::put(to, *count);
            last = *bucket;
        }
    }

    /// Adds encoded counts, and consumes their bytes from the front of `from`.
    pub(super) fn merge_encoded(&mut self, from: &mut &[u8]) -> Option<()> {
        let buckets = usize::try_from(varint::take(from)?).ok()?;
        // Each count takes two bytes or more, so damaged bytes cannot cause an allocation larger than the input.
        let mut counts = Vec::with_capacity(buckets.min(from.len() / 2));
        let mut bucket = 0_u16;
        for place in 0..buckets {
            let step = u16::try_from(varint::take(from)?).ok()?;
            if place > 0 && step == 0 {
                return None;
            }
            bucket = bucket.checked_add(step)?;
            counts.push((bucket, varint::take(from)?));
        }
        if self.counts.is_empty() {
            self.counts = counts;
        } else {
            self.merge_counts(&counts);
        }
        Some(())
    }
}

fn bucket_of(micros: u64) -> u16 {
    let exponent = micros.max(1).ilog2();
    let bucket = if exponent < SUB_BITS {
        micros
    } else {
        let shift = exponent - SUB_BITS;
        (u64::from(shift) << SUB_BITS) + (micros >> shift)
    };
    u16::try_from(bucket).unwrap_or(u16::MAX)
}

fn middle_of(bucket: u16) -> u64 {
    let (width_bits, lead) = (bucket >> SUB_BITS, u64::from(bucket & 0xf));
    // The first sixteen buckets are one microsecond wide.
    let Some(shift) = width_bits.checked_sub(1) else {
        return lead;
    };
    let low = (lead + 16)
        .checked_shl(u32::from(shift))
        .unwrap_or(u64::MAX);
    low.saturating_add((1_u64.checked_shl(u32::from(shift)).unwrap_or(0)) / 2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn durations() -> impl Strategy<Value = Vec<u64>> {
        let duration = (0_u32..40).prop_flat_map(|bits| 0..=(1_u64 << bits));
        prop::collection::vec(duration, 1..200)
    }

    proptest! {
            #[test]
            fn a_percentile_is_within_its_bound(mut durations in durations(), of_hundred in 0_u8..=100) {
                let mut histogram = Histogram::default();
                for micros in &*durations {
     histogram.add(*micros);
    }
                durations.sort_unstable();
                let rank = (durations.len() * usize::from(of_hundred)).div_ceil(100).max(1);
                let true_one = durations[rank - 1];
                let estimate = histogram.percentile(of_hundred).unwrap();
                prop_assert!(estimate.abs_diff(true_one) <= true_one / 32, "{} instead of {}", estimate, true_one);
            }

            #[test]
            fn merging_is_counting_all(one in durations(), other in durations()) {
                let count = |durations: &[u64]| {
                    let mut histogram = Histogram::default();
                    for micros in durations {
     histogram.add(*micros);
    }
                    histogram
                };
                let mut merged = count(&one);
                merged.merge(&count(&other));
                let mut bytes = Vec::new();
                count(&other).encode(&mut bytes);
                let mut encoded = count(&one);
                let mut rest = &*bytes;
                prop_assert_eq!(encoded.merge_encoded(&mut rest), Some(()));
                prop_assert!(rest.is_empty());
                let all: Vec<u64> = one.into_iter().chain(other).collect();
                prop_assert_eq!(&merged, &count(&all));
                prop_assert_eq!(&encoded, &merged);
            }
        }

    #[test]
    fn the_longest_durations_have_buckets_too() {
        for micros in [0, 1, 15, 16, 31, 32, u64::from(u32::MAX), u64::MAX] {
            let mut histogram = Histogram::default();
            histogram.add(micros);
            let estimate = histogram.percentile(50).unwrap();
            assert!(
                estimate.abs_diff(micros) <= micros / 32,
                "{estimate} instead of {micros}"
            );
        }
        assert_eq!(Histogram::default().percentile(50), None);
    }
}
