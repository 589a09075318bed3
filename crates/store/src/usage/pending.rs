//! Encodes counts of batches that are not yet added to the roll-ups.
//!
//! An item contains the numbers of a call's series, a minute, and the totals of that minute.

use ledger::{MINUTE_MS, UnixMs};

use super::roll_up::{NumberedCounts, SeriesNumbers};
use super::totals::Totals;
use super::varint;

pub(crate) fn encode(counts: &NumberedCounts) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (numbers, minute, totals) in counts.iter() {
        for number in numbers.all() {
            varint::put_signed(&mut bytes, number);
        }
        varint::put_signed(&mut bytes, minute.get().div_euclid(MINUTE_MS));
        totals.encode_to(&mut bytes);
    }
    bytes
}

/// Adds encoded counts to `counts`. Returns `None` if the bytes are damaged; the counts before the damage are added.
pub(crate) fn decode(mut from: &[u8], counts: &mut NumberedCounts) -> Option<()> {
    while !from.is_empty() {
        let mut numbers = SeriesNumbers::default().all();
        for number in &mut numbers {
            *number = varint::take_signed(&mut from)?;
        }
        let minute = varint::take_signed(&mut from)?.checked_mul(MINUTE_MS)?;
        let totals = Totals::take(&mut from)?;
        let numbers = SeriesNumbers::from_all(numbers);
        counts.add(numbers, UnixMs::new(minute), totals);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::records::journal::JournalRow;

    fn totals_of(calls: u64) -> Totals {
        let mut totals = Totals::default();
        for call in 0..calls {
            let mut row = JournalRow::default();
            row.timings.total_us = call * 1_000;
            totals.add(&row);
        }
        totals
    }

    proptest! {
        #[test]
        fn batches_come_back_as_their_sum(
            batches in prop::collection::vec(prop::collection::vec((0_i64..3, -2_i64..3, 1_u64..5), 0..6), 0..4)
        ) {
            let mut decoded = NumberedCounts::default();
            let mut sum = NumberedCounts::default();
            for batch in batches {
                let mut counts = NumberedCounts::default();
                for (series, minute, calls) in batch {
                    let numbers = SeriesNumbers::from_all([series, -series, i64::MAX, 0, series]);
                    let minute = UnixMs::new(minute * MINUTE_MS);
                    counts.add(numbers, minute, totals_of(calls));
                    sum.add(numbers, minute, totals_of(calls));
                }
                prop_assert_eq!(decode(&encode(&counts), &mut decoded), Some(()));
            }
            let sorted = |counts: &NumberedCounts| {
                let mut all: Vec<_> = counts
                    .iter()
                    .map(|(numbers, minute, totals)| (numbers.all(), minute, totals.clone()))
                    .collect();
                all.sort_by_key(|(numbers, minute, _)| (*numbers, *minute));
                all
            };
            prop_assert_eq!(sorted(&decoded), sorted(&sum));
        }

        #[test]
        fn any_bytes_end_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _: Option<()> = decode(&bytes, &mut NumberedCounts::default());
        }
    }
}
