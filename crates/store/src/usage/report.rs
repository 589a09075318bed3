//! Adds up roll-ups for a usage report.

use std::collections::HashMap;

use ledger::UnixMs;

use super::plan::UsageQuery;
use super::series::Series;
use super::totals::Totals;
use crate::cache::IdMap;

/// The usage of one step, for one combination of the requested dimensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRow {
    /// When the step began. `None` if the query has no steps.
    pub at: Option<UnixMs>,
    /// The values of the requested dimensions. Other dimensions are empty.
    pub series: Series,
    pub totals: Totals,
}

/// The maximum number of stored totals that are read for one report, so that it takes about a second at most.
const TOTALS_MAX: usize = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Added {
    Yes,
    TooMany,
}

/// A report under construction.
#[derive(Debug)]
pub(crate) struct Report {
    query: UsageQuery,
    /// The group of each series, by series number. `None` if the series does not match the query.
    groups: IdMap<i64, Option<usize>>,
    /// The groups of the answer, by the values of the requested dimensions.
    numbers: HashMap<Series, usize>,
    /// Totals by step and group.
    rows: IdMap<(Option<UnixMs>, usize), Totals>,
    read: usize,
}

impl Report {
    pub(crate) fn new(query: UsageQuery) -> Self {
        Self {
            query,
            groups: IdMap::default(),
            numbers: HashMap::new(),
            rows: IdMap::default(),
            read: 0,
        }
    }

    /// Whether the series with this number is known. Unknown series must be looked up.
    pub(crate) fn knows(&self, series: i64) -> bool {
        !self.query.needs_series() || self.groups.contains_key(&series)
    }

    /// Sets the series that has this number.
    pub(crate) fn name(&mut self, number: i64, series: &Series) {
        let group = self.query.matches(series).then(|| {
            let next = self.numbers.len();
            let asked_for = series.only(&self.query.by);
            *self.numbers.entry(asked_for).or_insert(next)
        });
        self.groups.insert(number, group);
    }

    /// Adds stored totals. Totals of series that do not match are skipped.
    #[must_use]
    pub(crate) fn add(&mut self, at: UnixMs, series: i64, totals: &[u8]) -> Added {
        self.add_by(at, series, |row| {
            if row.merge_encoded(totals).is_none() {
                tracing::error!(?at, "stored totals of usage are damaged");
            }
        })
    }

    /// Adds totals. Totals of series that do not match are skipped.
    #[must_use]
    pub(crate) fn add_totals(&mut self, at: UnixMs, series: i64, totals: &Totals) -> Added {
        self.add_by(at, series, |row| row.merge(totals))
    }

    fn add_by(&mut self, at: UnixMs, series: i64, add_to: impl FnOnce(&mut Totals)) -> Added {
        self.read = self.read.saturating_add(1);
        let group = if self.query.needs_series() {
            self.groups.get(&series).copied().flatten()
        } else {
            Some(0)
        };
        if let Some(group) = group {
            let step = self.query.step.map(|step| step.start_of(at));
            add_to(self.rows.entry((step, group)).or_default());
        }
        if self.read > TOTALS_MAX || self.rows.len() > self.query.rows_max {
            return Added::TooMany;
        }
        Added::Yes
    }

    /// The maximum number of totals to read: one more than allowed, so that an excess is noticed.
    pub(crate) fn room(&self) -> usize {
        TOTALS_MAX.saturating_sub(self.read).saturating_add(1)
    }

    /// The rows of the report, ordered by time and then by dimension values.
    pub(crate) fn finish(self) -> Vec<UsageRow> {
        let mut series = vec![Series::default(); self.numbers.len().max(1)];
        for (name, group) in self.numbers {
            if let Some(place) = series.get_mut(group) {
                *place = name;
            }
        }
        let rows = self.rows.into_iter().filter_map(|((at, group), totals)| {
            let series = series.get(group)?.clone();
            Some(UsageRow { at, series, totals })
        });
        let mut rows: Vec<UsageRow> = rows.collect();
        rows.sort_unstable_by(|one, other| (one.at, &one.series).cmp(&(other.at, &other.series)));
        rows
    }
}
