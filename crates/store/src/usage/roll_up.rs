//! What is kept of a batch of journal rows.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ledger::UnixMs;

use super::plan::Dimension;
use super::series::Series;
use super::time::{DAY_MS, HOUR_MS, MINUTE_MS, floor};
use super::totals::Totals;
use crate::records::journal::JournalRow;

/// How long roll-ups of a minute are kept. All others are kept for good.
const MINUTES_KEPT_MS: i64 = 49 * HOUR_MS;

/// A kind of roll-up: by what calls are counted, and how long its steps are.
///
/// Traffic has few series, and serves everything that does not ask for wallets. Reports by wallet or key read
/// days, because there may be thousands of each. Everything else is read from calls, by all dimensions at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Grain {
    TrafficMinute,
    TrafficHour,
    CallMinute,
    CallHour,
    WalletDay,
    KeyDay,
}

impl Grain {
    pub(crate) const ALL: [Self; 6] = [
        Self::TrafficMinute,
        Self::TrafficHour,
        Self::CallMinute,
        Self::CallHour,
        Self::WalletDay,
        Self::KeyDay,
    ];
    /// Those that are deleted when they are old.
    pub(crate) const MINUTES: [Self; 2] = [Self::TrafficMinute, Self::CallMinute];

    /// The number by which it is stored.
    pub(crate) fn number(self) -> i16 {
        match self {
            Self::TrafficMinute => 0,
            Self::TrafficHour => 1,
            Self::CallMinute => 2,
            Self::CallHour => 3,
            Self::WalletDay => 4,
            Self::KeyDay => 5,
        }
    }

    pub(super) fn step_ms(self) -> i64 {
        match self {
            Self::TrafficMinute | Self::CallMinute => MINUTE_MS,
            Self::TrafficHour | Self::CallHour => HOUR_MS,
            Self::WalletDay | Self::KeyDay => DAY_MS,
        }
    }

    fn dimensions(self) -> &'static [Dimension] {
        match self {
            Self::TrafficMinute | Self::TrafficHour => {
                &[Dimension::Model, Dimension::Channel, Dimension::Endpoint]
            }
            Self::CallMinute | Self::CallHour => &Dimension::ALL,
            Self::WalletDay => &[Dimension::Wallet],
            Self::KeyDay => &[Dimension::Wallet, Dimension::Key],
        }
    }
}

/// Minutes before this time are deleted.
pub(crate) fn minutes_kept_since(now: UnixMs) -> UnixMs {
    floor(now.minus_ms(MINUTES_KEPT_MS), HOUR_MS)
}

/// Where totals are kept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot {
    pub(crate) grain: Grain,
    pub(crate) at: UnixMs,
    pub(crate) series: Series,
}

/// Totals to add, in the order of their places.
pub(crate) type RollUp = BTreeMap<Slot, Totals>;

/// What a batch of rows adds to the roll-ups.
pub(crate) fn roll_up(rows: &[JournalRow], now: UnixMs) -> RollUp {
    let nothing: Arc<str> = Arc::from("");
    // Rows are counted once, by all dimensions. The other roll-ups are sums of these.
    let mut calls: HashMap<(UnixMs, Series), Totals> = HashMap::new();
    for row in rows {
        let place = (floor(row.at, MINUTE_MS), Series::of(row, &nothing));
        calls.entry(place).or_default().add(row);
    }
    let minutes_since = minutes_kept_since(now);
    let mut slots = RollUp::new();
    for ((minute, series), totals) in calls {
        for grain in Grain::ALL {
            if Grain::MINUTES.contains(&grain) && minute < minutes_since {
                continue;
            }
            let slot = Slot {
                grain,
                at: floor(minute, grain.step_ms()),
                series: series.only(grain.dimensions()),
            };
            slots.entry(slot).or_default().merge(&totals);
        }
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::ids::{KeyId, WalletId};

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
        let slots = roll_up(&rows, now);
        for (grain, series, calls) in [
            (Grain::TrafficMinute, 3, 3),
            (Grain::CallMinute, 3, 3),
            (Grain::TrafficHour, 4, 4),
            (Grain::CallHour, 4, 4),
            (Grain::WalletDay, 2, 4),
            (Grain::KeyDay, 3, 4),
        ] {
            let of_grain = slots.iter().filter(|(slot, _)| slot.grain == grain);
            let counted: Vec<u64> = of_grain.map(|(_, totals)| totals.requests).collect();
            assert_eq!(counted.len(), series, "{grain:?}");
            assert_eq!(counted.iter().sum::<u64>(), calls, "{grain:?}");
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
        let slots = roll_up(&rows, UnixMs::new(0));
        assert!(slots.len() <= Grain::ALL.len());
        assert!(slots.values().all(|totals| totals.errors == 100));
    }
}
