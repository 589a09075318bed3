//! Counts journal rows into roll-ups.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use ledger::{HOUR_MS, MINUTE_MS, UnixMs};

use super::plan::Dimension;
use super::series::Series;
use super::time::{UsageStep, floor};
use super::totals::Totals;
use crate::cache::IdMap;
use crate::records::journal::JournalRow;

/// How long roll-ups of minutes are kept. All other roll-ups are kept forever.
const MINUTES_KEPT_MS: i64 = 49 * HOUR_MS;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RollUpSubject {
    /// Has few series, and serves all queries that do not ask for wallets or keys.
    Traffic,
    /// Has all dimensions.
    Calls,
    Wallets,
    Keys,
    WalletTraffic,
}

impl RollUpSubject {
    const ALL: [Self; 5] = [
        Self::Traffic,
        Self::Calls,
        Self::Wallets,
        Self::Keys,
        Self::WalletTraffic,
    ];

    fn dimensions(self) -> &'static [Dimension] {
        use Dimension::{Channel, Endpoint, Key, Model, Wallet};
        match self {
            Self::Traffic => &[Model, Channel, Endpoint],
            Self::Calls => &Dimension::ALL,
            Self::Wallets => &[Wallet],
            Self::Keys => &[Wallet, Key],
            Self::WalletTraffic => &[Wallet, Model, Channel, Endpoint],
        }
    }
}

/// The numbers of the series in which a call is counted, one series for each subject.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct SeriesNumbers([i64; RollUpSubject::ALL.len()]);

impl SeriesNumbers {
    /// Looks up the number of a call's series for each subject.
    pub(crate) fn find<E>(
        series: &Series,
        mut number: impl FnMut(Series) -> Result<i64, E>,
    ) -> Result<Self, E> {
        let mut numbers = [0; RollUpSubject::ALL.len()];
        for (found, part) in numbers.iter_mut().zip(parts_of(series)) {
            *found = number(part)?;
        }
        Ok(Self(numbers))
    }

    /// The numbers in the order of [`RollUpSubject::ALL`], which is also the order of the encoding.
    pub(super) fn all(self) -> [i64; RollUpSubject::ALL.len()] {
        self.0
    }

    pub(super) fn from_all(numbers: [i64; RollUpSubject::ALL.len()]) -> Self {
        Self(numbers)
    }

    fn of(self, subject: RollUpSubject) -> i64 {
        let place = RollUpSubject::ALL.iter().position(|it| *it == subject);
        place
            .and_then(|place| self.0.get(place))
            .copied()
            .unwrap_or(0)
    }
}

/// The series of a call for each subject.
pub(crate) fn parts_of(series: &Series) -> [Series; RollUpSubject::ALL.len()] {
    RollUpSubject::ALL.map(|subject| series.only(subject.dimensions()))
}

/// A kind of roll-up: its dimensions and the length of its steps.
///
/// A report reads the longest steps that fit, so that it reads few of them even for a long time range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Grain {
    TrafficMinute,
    TrafficHour,
    TrafficDay,
    CallMinute,
    CallHour,
    WalletDay,
    WalletMonth,
    KeyDay,
    KeyMonth,
    WalletTrafficDay,
    WalletTrafficMonth,
}

impl Grain {
    pub(crate) const ALL: [Self; 11] = [
        Self::TrafficMinute,
        Self::TrafficHour,
        Self::TrafficDay,
        Self::CallMinute,
        Self::CallHour,
        Self::WalletDay,
        Self::WalletMonth,
        Self::KeyDay,
        Self::KeyMonth,
        Self::WalletTrafficDay,
        Self::WalletTrafficMonth,
    ];
    /// Kinds without wallets and keys, which have few series.
    pub(crate) const OF_TRAFFIC: [Self; 3] =
        [Self::TrafficMinute, Self::TrafficHour, Self::TrafficDay];
    /// Kinds with wallets or keys, which may have a series for every call.
    pub(crate) const OF_ACCOUNTS: [Self; 8] = [
        Self::CallMinute,
        Self::CallHour,
        Self::WalletDay,
        Self::WalletMonth,
        Self::KeyDay,
        Self::KeyMonth,
        Self::WalletTrafficDay,
        Self::WalletTrafficMonth,
    ];
    /// Kinds that are deleted after a while.
    pub(crate) const MINUTES: [Self; 2] = [Self::TrafficMinute, Self::CallMinute];

    /// The number that stands for this kind in the database.
    pub(crate) fn number(self) -> i16 {
        match self {
            Self::TrafficMinute => 0,
            Self::TrafficHour => 1,
            Self::CallMinute => 2,
            Self::CallHour => 3,
            Self::WalletDay => 4,
            Self::KeyDay => 5,
            Self::TrafficDay => 6,
            Self::WalletMonth => 7,
            Self::KeyMonth => 8,
            Self::WalletTrafficDay => 9,
            Self::WalletTrafficMonth => 10,
        }
    }

    pub(crate) fn step(self) -> UsageStep {
        match self {
            Self::TrafficMinute | Self::CallMinute => UsageStep::Minute,
            Self::TrafficHour | Self::CallHour => UsageStep::Hour,
            Self::TrafficDay | Self::WalletDay | Self::KeyDay | Self::WalletTrafficDay => {
                UsageStep::Day
            }
            Self::WalletMonth | Self::KeyMonth | Self::WalletTrafficMonth => UsageStep::Month,
        }
    }

    /// Whether earlier versions did not write this kind, so that older steps have no totals.
    pub(crate) fn is_later_addition(self) -> bool {
        match self {
            Self::TrafficMinute
            | Self::TrafficHour
            | Self::CallMinute
            | Self::CallHour
            | Self::WalletDay
            | Self::KeyDay => false,
            Self::TrafficDay
            | Self::WalletMonth
            | Self::KeyMonth
            | Self::WalletTrafficDay
            | Self::WalletTrafficMonth => true,
        }
    }

    /// Whether each key has totals of its own.
    pub(crate) fn counts_keys(self) -> bool {
        self.subject().dimensions().contains(&Dimension::Key)
    }

    fn subject(self) -> RollUpSubject {
        match self {
            Self::TrafficMinute | Self::TrafficHour | Self::TrafficDay => RollUpSubject::Traffic,
            Self::CallMinute | Self::CallHour => RollUpSubject::Calls,
            Self::WalletDay | Self::WalletMonth => RollUpSubject::Wallets,
            Self::KeyDay | Self::KeyMonth => RollUpSubject::Keys,
            Self::WalletTrafficDay | Self::WalletTrafficMonth => RollUpSubject::WalletTraffic,
        }
    }
}

/// Minutes before this time are deleted.
pub(crate) fn minutes_kept_since(now: UnixMs) -> UnixMs {
    floor(now.minus_ms(MINUTES_KEPT_MS), HOUR_MS)
}

/// The key of stored totals, with the fields in the order of the table's columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Slot {
    pub(crate) grain: Grain,
    pub(crate) at: UnixMs,
    /// The number of the series.
    pub(crate) series: i64,
}

/// The calls of a batch of rows, counted by minute and all dimensions. The roll-ups are sums of these counts.
#[derive(Debug, Default)]
pub(crate) struct UsageCounts(IdMap<(Series, UnixMs), Totals>);

impl UsageCounts {
    pub(crate) fn of(rows: &[JournalRow]) -> Self {
        let nothing: Arc<str> = Arc::from("");
        let mut counts = Self::default();
        for row in rows {
            let minute = floor(row.at, MINUTE_MS);
            let series = Series::of(row, &nothing);
            counts.0.entry((series, minute)).or_default().add(row);
        }
        counts
    }

    /// All series, each once for every minute.
    pub(crate) fn series(&self) -> impl Iterator<Item = &Series> {
        self.0.keys().map(|(series, _)| series)
    }

    /// Replaces series with their numbers. Series without numbers are left out.
    pub(crate) fn numbered(
        self,
        mut numbers: impl FnMut(&Series) -> Option<SeriesNumbers>,
    ) -> NumberedCounts {
        let mut counts = NumberedCounts::default();
        for ((series, minute), totals) in self.0 {
            if let Some(numbers) = numbers(&series) {
                counts.add(numbers, minute, totals);
            }
        }
        counts
    }
}

/// Calls counted by minute and by the numbers of their series. The roll-ups are sums of these counts.
#[derive(Debug, Default)]
pub(crate) struct NumberedCounts(IdMap<(SeriesNumbers, UnixMs), Totals>);

impl NumberedCounts {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SeriesNumbers, UnixMs, &Totals)> {
        let counts = self.0.iter();
        counts.map(|((numbers, minute), totals)| (*numbers, *minute, totals))
    }

    pub(super) fn add(&mut self, numbers: SeriesNumbers, minute: UnixMs, totals: Totals) {
        match self.0.entry((numbers, minute)) {
            Entry::Vacant(place) => {
                place.insert(totals);
            }
            Entry::Occupied(mut sum) => sum.get_mut().merge(&totals),
        }
    }

    /// The contributions of these calls to the roll-ups of one grain: the start of the step, the number of the series,
    /// and the totals. They are not added up yet.
    pub(crate) fn of_grain(&self, grain: Grain) -> impl Iterator<Item = (UnixMs, i64, &Totals)> {
        self.iter().map(move |(numbers, minute, totals)| {
            let at = grain.step().start_of(minute);
            (at, numbers.of(grain.subject()), totals)
        })
    }

    /// The totals to add to the roll-ups of some grains, in the order of the table, so that adjacent rows are written
    /// together.
    pub(crate) fn roll_up(&self, grains: &[Grain], now: UnixMs) -> Vec<(Slot, Totals)> {
        let minutes_since = minutes_kept_since(now);
        let mut slots: IdMap<Slot, Totals> = IdMap::default();
        for subject in RollUpSubject::ALL {
            let of_subject: Vec<Grain> = grains
                .iter()
                .copied()
                .filter(|grain| grain.subject() == subject)
                .collect();
            if of_subject.is_empty() {
                continue;
            }
            for ((minute, series), totals) in &self.minutes_of(subject) {
                for grain in &of_subject {
                    if Grain::MINUTES.contains(grain) && *minute < minutes_since {
                        continue;
                    }
                    let slot = Slot {
                        grain: *grain,
                        at: grain.step().start_of(*minute),
                        series: *series,
                    };
                    slots.entry(slot).or_default().merge(totals);
                }
            }
        }
        let mut slots: Vec<(Slot, Totals)> = slots.into_iter().collect();
        slots.sort_unstable_by_key(|(slot, _)| (slot.grain.number(), slot.at, slot.series));
        slots
    }

    /// The totals of each minute by the series of a subject. Longer steps are sums of these. The calls of a batch fall
    /// into one or two minutes, so most merging is done once and not for each step.
    fn minutes_of(&self, subject: RollUpSubject) -> IdMap<(UnixMs, i64), Totals> {
        let mut minutes: IdMap<(UnixMs, i64), Totals> = IdMap::default();
        for (numbers, minute, totals) in self.iter() {
            let sum = minutes.entry((minute, numbers.of(subject))).or_default();
            sum.merge(totals);
        }
        minutes
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use ledger::DAY_MS;

    use super::*;
    use crate::records::ids::{KeyId, WalletId};

    /// Rolls up rows. Different series get different numbers.
    fn rolled_up(rows: &[JournalRow], now: UnixMs) -> Vec<(Slot, Totals)> {
        let mut known: HashMap<Series, i64> = HashMap::new();
        let mut number = |series: Series| {
            let next = i64::try_from(known.len()).unwrap();
            Ok::<_, ()>(*known.entry(series).or_insert(next))
        };
        let counts = UsageCounts::of(rows);
        let counts = counts.numbered(|series| SeriesNumbers::find(series, &mut number).ok());
        counts.roll_up(&Grain::ALL, now)
    }

    #[test]
    fn each_grain_counts_every_call_once() {
        let now = UnixMs::new(1_800_000_000_000);
        let wallet = WalletId::random();
        let row = |key, model: &str, ago_ms: i64| JournalRow {
            at: now.minus_ms(ago_ms),
            wallet: Some(wallet),
            key: Some(key),
            model: model.into(),
            endpoint: "/v1/x".into(),
            ..JournalRow::default()
        };
        let (one, other) = (KeyId::random(), KeyId::random());
        let rows = [
            row(one, "a/x", 0),
            row(one, "a/y", 1),
            row(other, "a/x", HOUR_MS),
            row(other, "a/x", 30 * DAY_MS),
        ];
        let slots = rolled_up(&rows, now);
        for (grain, series, calls) in [
            (Grain::TrafficMinute, 3, 3),
            (Grain::CallMinute, 3, 3),
            (Grain::TrafficHour, 4, 4),
            (Grain::CallHour, 4, 4),
            (Grain::TrafficDay, 3, 4),
            (Grain::WalletDay, 2, 4),
            (Grain::WalletMonth, 2, 4),
            (Grain::KeyDay, 3, 4),
            (Grain::KeyMonth, 3, 4),
            (Grain::WalletTrafficDay, 3, 4),
            (Grain::WalletTrafficMonth, 3, 4),
        ] {
            let of_grain = slots.iter().filter(|(slot, _)| slot.grain == grain);
            let counted: Vec<u64> = of_grain.map(|(_, totals)| totals.requests).collect();
            assert_eq!(counted.len(), series, "{grain:?}");
            assert_eq!(counted.iter().sum::<u64>(), calls, "{grain:?}");
        }
    }

    #[test]
    fn each_grain_is_of_traffic_or_of_accounts() {
        let of_both = [Grain::OF_TRAFFIC.as_slice(), Grain::OF_ACCOUNTS.as_slice()].concat();
        assert_eq!(of_both, Grain::ALL);
        for grain in Grain::ALL {
            let is_of_traffic = grain.subject() == RollUpSubject::Traffic;
            assert_eq!(
                Grain::OF_TRAFFIC.contains(&grain),
                is_of_traffic,
                "{grain:?}"
            );
        }
    }

    #[test]
    fn names_that_callers_make_up_get_no_series() {
        let made_up = |n: usize| JournalRow {
            model: format!("nobody/model-{n}").into(),
            code: Some("model_not_found".into()),
            status: 404,
            ..JournalRow::default()
        };
        let rows: Vec<JournalRow> = (0..100).map(made_up).collect();
        let slots = rolled_up(&rows, UnixMs::new(0));
        assert!(slots.len() <= Grain::ALL.len());
        assert!(slots.iter().all(|(_, totals)| totals.errors == 100));
    }
}
