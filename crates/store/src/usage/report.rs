//! Puts the answer together from roll-ups.

use std::collections::{BTreeMap, HashMap};

use ledger::UnixMs;

use super::plan::UsageQuery;
use super::series::Series;
use super::totals::Totals;

/// The usage of one step, by what was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRow {
    /// When the step began. `None` without steps.
    pub at: Option<UnixMs>,
    /// Only what was asked for.
    pub series: Series,
    pub totals: Totals,
}

/// A report while its roll-ups are read.
#[derive(Debug)]
pub(crate) struct Report {
    query: UsageQuery,
    /// By the step, and by the number of the series.
    parts: HashMap<(Option<UnixMs>, i64), Totals>,
}

impl Report {
    pub(crate) fn new(query: UsageQuery) -> Self {
        Self {
            query,
            parts: HashMap::new(),
        }
    }

    /// Adds stored totals, or several that follow each other.
    pub(crate) fn add(&mut self, at: UnixMs, series: i64, totals: &[u8]) {
        let step = self.query.step.map(|step| step.start_of(at));
        let series = if self.query.needs_series() { series } else { 0 };
        let part = self.parts.entry((step, series)).or_default();
        if part.merge_encoded(totals).is_none() {
            tracing::error!(?at, "stored totals of usage are damaged");
        }
    }

    /// The numbers of the series to look up.
    pub(crate) fn series(&self) -> Vec<i64> {
        if !self.query.needs_series() {
            return Vec::new();
        }
        let mut numbers: Vec<i64> = self.parts.keys().map(|(_, series)| *series).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// The rows of the answer, by time and then by what was asked for.
    pub(crate) fn finish(self, series: &HashMap<i64, Series>) -> Vec<UsageRow> {
        let nothing = Series::default();
        let mut rows: BTreeMap<(Option<UnixMs>, Series), Totals> = BTreeMap::new();
        for ((at, number), totals) in self.parts {
            let series = series.get(&number).unwrap_or(&nothing);
            if self.query.matches(series) {
                let place = (at, series.only(&self.query.by));
                rows.entry(place).or_default().merge(&totals);
            }
        }
        let rows = rows.into_iter();
        rows.map(|((at, series), totals)| UsageRow { at, series, totals })
            .collect()
    }
}
