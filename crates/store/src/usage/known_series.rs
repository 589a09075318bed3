//! Caches the numbers of recently used series.

use super::roll_up::SeriesNumbers;
use super::series::Series;
use crate::cache::IdMap;

/// The approximate maximum number of cached series.
const SERIES_MAX: usize = 131_072;

/// Series whose numbers are known. Those that were not used recently are dropped.
#[derive(Debug, Default)]
pub(crate) struct KnownSeries {
    young: IdMap<Series, SeriesNumbers>,
    old: IdMap<Series, SeriesNumbers>,
}

impl KnownSeries {
    pub(crate) fn get(&mut self, series: &Series) -> Option<SeriesNumbers> {
        if let Some(numbers) = self.young.get(series) {
            return Some(*numbers);
        }
        let (series, numbers) = self.old.remove_entry(series)?;
        self.young.insert(series, numbers);
        Some(numbers)
    }

    pub(crate) fn insert(&mut self, series: Series, numbers: SeriesNumbers) {
        self.young.insert(series, numbers);
    }

    /// Drops the series that were not used recently, if there are too many. Must not be called between the lookup of a
    /// batch's series and the use of their numbers.
    pub(crate) fn age(&mut self) {
        if self.young.len() >= SERIES_MAX / 2 {
            self.old = std::mem::take(&mut self.young);
        }
    }

    /// Forgets all series. After a rollback, the table may lack some of them.
    pub(crate) fn forget(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_what_is_not_goes() {
        let series = |n: usize| Series {
            model: n.to_string().into(),
            ..Series::default()
        };
        let numbers = |n: i64| SeriesNumbers::find(&Series::default(), |_| Ok::<_, ()>(n)).unwrap();
        let mut known = KnownSeries::default();
        let used = series(SERIES_MAX);
        known.insert(used.clone(), numbers(7));
        for n in 0..SERIES_MAX {
            known.insert(series(n), numbers(1));
            known.age();
            assert_eq!(known.get(&used), Some(numbers(7)));
        }
        assert_eq!(known.get(&series(0)), None);
        assert_eq!(known.get(&series(SERIES_MAX - 1)), Some(numbers(1)));
        known.forget();
        assert_eq!(known.get(&used), None);
    }
}
