//! Selects the roll-ups that answer a usage query.

use ledger::UnixMs;

use super::roll_up::{Grain, minutes_kept_since};
use super::series::Series;
use super::time::UsageStep;
use crate::records::ids::{KeyId, WalletId};

/// A dimension by which calls can be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dimension {
    Model,
    Channel,
    Wallet,
    Key,
    Endpoint,
}

impl Dimension {
    /// All dimensions.
    pub const ALL: [Self; 5] = [
        Self::Model,
        Self::Channel,
        Self::Wallet,
        Self::Key,
        Self::Endpoint,
    ];
}

/// A usage query.
///
/// The ends of its time range are widened to whole minutes, and to whole hours if they are more than two days in the
/// past.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageQuery {
    pub from: UnixMs,
    pub to: UnixMs,
    /// `None` adds up the whole time range.
    pub step: Option<UsageStep>,
    pub by: Vec<Dimension>,
    pub model: Option<String>,
    pub channel: Option<String>,
    pub wallet: Option<WalletId>,
    pub key: Option<KeyId>,
    pub endpoint: Option<String>,
    /// The current time, which determines the minutes that are still kept.
    pub now: UnixMs,
    /// The maximum number of rows per answer.
    pub rows_max: usize,
}

/// The maximum number of rows in any answer. Each has two histograms, so more would take too much memory.
const ROWS_MAX: usize = 200_000;

impl UsageQuery {
    /// All usage of a time range, added up.
    pub fn between(from: UnixMs, to: UnixMs, now: UnixMs) -> Self {
        Self {
            from,
            to,
            step: None,
            by: Vec::new(),
            model: None,
            channel: None,
            wallet: None,
            key: None,
            endpoint: None,
            now,
            rows_max: ROWS_MAX,
        }
    }

    /// The earliest time for which totals of minutes are available.
    pub fn minutes_since(now: UnixMs) -> UnixMs {
        minutes_kept_since(now)
    }

    pub(super) fn matches(&self, series: &Series) -> bool {
        let text =
            |wanted: &Option<String>, is: &str| wanted.as_deref().is_none_or(|text| text == is);
        text(&self.model, &series.model)
            && text(&self.channel, &series.channel)
            && text(&self.endpoint, &series.endpoint)
            && self
                .wallet
                .is_none_or(|wallet| series.wallet == Some(wallet))
            && self.key.is_none_or(|key| series.key == Some(key))
    }

    /// Whether the answer depends on the series of calls.
    pub(super) fn needs_series(&self) -> bool {
        !self.dimensions().is_empty()
    }

    fn dimensions(&self) -> Vec<Dimension> {
        let mut dimensions = self.by.clone();
        dimensions.extend(self.model.is_some().then_some(Dimension::Model));
        dimensions.extend(self.channel.is_some().then_some(Dimension::Channel));
        dimensions.extend(self.wallet.is_some().then_some(Dimension::Wallet));
        dimensions.extend(self.key.is_some().then_some(Dimension::Key));
        dimensions.extend(self.endpoint.is_some().then_some(Dimension::Endpoint));
        dimensions
    }

    /// The roll-ups to read. The segments do not overlap, and the one with the longest steps comes first.
    ///
    /// Some grains were not written by earlier versions. `long_steps_since` is the time from which these grains are
    /// complete, as recorded by the migration; before it, other grains are read. `None` if they have always been
    /// complete.
    pub(crate) fn segments(&self, long_steps_since: Option<UnixMs>) -> Vec<Segment> {
        let dimensions = self.dimensions();
        let of = |dimension: Dimension| dimensions.contains(&dimension);
        let by_account = of(Dimension::Wallet) || of(Dimension::Key);
        let by_traffic = of(Dimension::Model) || of(Dimension::Channel) || of(Dimension::Endpoint);
        let grains: &[Grain] = match (by_account, by_traffic) {
            (false, _) => &[Grain::TrafficDay, Grain::TrafficHour, Grain::TrafficMinute],
            (true, true) if of(Dimension::Key) => &[Grain::CallHour, Grain::CallMinute],
            (true, true) => &[
                Grain::WalletTrafficMonth,
                Grain::WalletTrafficDay,
                Grain::CallHour,
                Grain::CallMinute,
            ],
            (true, false) if of(Dimension::Key) => &[
                Grain::KeyMonth,
                Grain::KeyDay,
                Grain::CallHour,
                Grain::CallMinute,
            ],
            (true, false) => &[
                Grain::WalletMonth,
                Grain::WalletDay,
                Grain::CallHour,
                Grain::CallMinute,
            ],
        };
        // No roll-up may cover more than one step.
        let step = self.step.unwrap_or(UsageStep::Month);
        let first = grains.iter().position(|grain| grain.step() <= step);
        let grains = first
            .and_then(|first| grains.get(first..))
            .unwrap_or_default();
        let mut segments = Vec::new();
        let cover = Cover {
            minutes_since: minutes_kept_since(self.now),
            long_steps_since,
        };
        cover.add(grains, self.from, self.to, &mut segments);
        segments
    }
}

/// Roll-ups of one grain in a time range. The end is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) grain: Grain,
    pub(crate) from: UnixMs,
    pub(crate) to: UnixMs,
}

impl Segment {
    /// The start times of all steps. `None` if there are more than `steps_max`.
    pub(crate) fn steps(self, steps_max: usize) -> Option<Vec<UnixMs>> {
        let mut steps = Vec::new();
        let mut at = self.from;
        while at < self.to {
            if steps.len() >= steps_max {
                return None;
            }
            steps.push(at);
            at = self.grain.step().ceil(at.plus_ms(1));
        }
        Some(steps)
    }
}

struct Cover {
    minutes_since: UnixMs,
    long_steps_since: Option<UnixMs>,
}

impl Cover {
    /// Covers a time range with the first grain, and the remaining ends with finer grains.
    fn add(&self, grains: &[Grain], from: UnixMs, to: UnixMs, segments: &mut Vec<Segment>) {
        let Some((grain, finer)) = grains.split_first() else {
            return;
        };
        let step = grain.step();
        let complete_since = self.long_steps_since.filter(|_| grain.is_later_addition());
        let first = step.ceil(complete_since.map_or(from, |since| since.max(from)));
        let last = step.start_of(to);
        let ends = if first < last && !finer.is_empty() {
            segments.push(Segment {
                grain: *grain,
                from: first,
                to: last,
            });
            vec![(from, first), (last, to)]
        } else {
            vec![(from, to)]
        };
        for (from, to) in ends.into_iter().filter(|(from, to)| from < to) {
            if self.are_kept(finer, from) {
                self.add(finer, from, to, segments);
            } else {
                segments.push(Segment {
                    grain: *grain,
                    from: step.start_of(from),
                    to: step.ceil(to),
                });
            }
        }
    }

    fn are_kept(&self, grains: &[Grain], from: UnixMs) -> bool {
        let finer = grains.first();
        finer.is_some_and(|grain| !Grain::MINUTES.contains(grain) || from >= self.minutes_since)
    }
}

#[cfg(test)]
mod tests {
    use ledger::{DAY_MS, HOUR_MS, MINUTE_MS};

    use super::*;

    /// The beginning of a day.
    const NOW: UnixMs = UnixMs::new(20_000 * DAY_MS);

    fn plan(query: &UsageQuery) -> Vec<(Grain, i64, i64)> {
        let segments = query.segments(None);
        segments
            .iter()
            .map(|part| (part.grain, NOW.ms_since(part.from), NOW.ms_since(part.to)))
            .collect()
    }

    #[test]
    fn long_steps_are_read_inside_and_short_ones_at_the_ends() {
        let from = NOW.minus_ms(HOUR_MS + 90_000);
        let query = UsageQuery::between(from, NOW.minus_ms(10), NOW);
        assert_eq!(
            plan(&query),
            [(Grain::TrafficMinute, HOUR_MS + 2 * MINUTE_MS, 0)]
        );
        let by_wallet = UsageQuery {
            by: vec![Dimension::Wallet],
            from: NOW.minus_ms(30 * DAY_MS + 90 * MINUTE_MS),
            to: NOW.plus_ms(5 * MINUTE_MS),
            ..query.clone()
        };
        assert_eq!(
            plan(&by_wallet),
            [
                (Grain::WalletDay, 30 * DAY_MS, 0),
                // Minutes of that time have been deleted, so the end is widened to an hour.
                (Grain::CallHour, 30 * DAY_MS + HOUR_MS, 30 * DAY_MS),
                (
                    Grain::CallHour,
                    30 * DAY_MS + 2 * HOUR_MS,
                    30 * DAY_MS + HOUR_MS,
                ),
                (Grain::CallMinute, 0, -5 * MINUTE_MS),
            ]
        );
        let by_day = UsageQuery {
            step: Some(UsageStep::Day),
            by: vec![Dimension::Model],
            ..by_wallet.clone()
        };
        assert_eq!(
            plan(&by_day),
            [
                (Grain::TrafficDay, 30 * DAY_MS, 0),
                (Grain::TrafficHour, 30 * DAY_MS + HOUR_MS, 30 * DAY_MS),
                (
                    Grain::TrafficHour,
                    30 * DAY_MS + 2 * HOUR_MS,
                    30 * DAY_MS + HOUR_MS
                ),
                (Grain::TrafficMinute, 0, -5 * MINUTE_MS),
            ]
        );
        let by_hour = UsageQuery {
            step: Some(UsageStep::Hour),
            from: NOW.minus_ms(HOUR_MS),
            to: NOW,
            ..by_wallet
        };
        assert_eq!(plan(&by_hour), [(Grain::CallHour, HOUR_MS, 0)]);
        let by_minute = UsageQuery {
            step: Some(UsageStep::Minute),
            by: vec![Dimension::Model],
            ..by_hour
        };
        assert_eq!(plan(&by_minute), [(Grain::TrafficMinute, HOUR_MS, 0)]);
    }

    #[test]
    fn an_empty_time_needs_nothing() {
        assert_eq!(plan(&UsageQuery::between(NOW, NOW, NOW)), []);
    }

    #[test]
    fn the_grain_has_every_dimension_that_is_asked_for() {
        use Dimension::{Channel, Endpoint, Key, Model, Wallet};
        let day = |by: &[Dimension]| {
            let query = UsageQuery {
                by: by.to_vec(),
                ..UsageQuery::between(NOW.minus_ms(DAY_MS), NOW, NOW)
            };
            plan(&query)[0].0
        };
        for (by, grain) in [
            (&[][..], Grain::TrafficDay),
            (&[Model, Channel, Endpoint], Grain::TrafficDay),
            (&[Wallet], Grain::WalletDay),
            (&[Key], Grain::KeyDay),
            (&[Wallet, Key], Grain::KeyDay),
            (&[Wallet, Model], Grain::WalletTrafficDay),
            (&[Key, Model], Grain::CallHour),
        ] {
            assert_eq!(day(by), grain, "{by:?}");
        }
        let filtered = UsageQuery {
            by: vec![Model],
            wallet: Some(WalletId::random()),
            ..UsageQuery::between(NOW.minus_ms(DAY_MS), NOW, NOW)
        };
        assert_eq!(plan(&filtered)[0].0, Grain::WalletTrafficDay);
    }

    #[test]
    fn whole_months_are_read_at_once() {
        let at = |text: &str| {
            let at: jiff::Timestamp = text.parse().unwrap();
            UnixMs::new(at.as_millisecond())
        };
        let (from, to) = (at("2024-07-20T00:00:00Z"), at("2024-10-02T00:00:00Z"));
        let query = UsageQuery {
            by: vec![Dimension::Key],
            ..UsageQuery::between(from, to, NOW)
        };
        let (first, last) = (at("2024-08-01T00:00:00Z"), at("2024-10-01T00:00:00Z"));
        let part = |grain, from, to| Segment { grain, from, to };
        let segments = [
            part(Grain::KeyMonth, first, last),
            part(Grain::KeyDay, from, first),
            part(Grain::KeyDay, last, to),
        ];
        assert_eq!(query.segments(None), segments);
        let september = at("2024-09-01T00:00:00Z");
        assert_eq!(segments[0].steps(2), Some(vec![first, september]));
        assert_eq!(segments[0].steps(1), None);
        assert_eq!(segments[1].steps(100).unwrap().len(), 12);
        let by_day = UsageQuery {
            step: Some(UsageStep::Day),
            ..query
        };
        assert_eq!(by_day.segments(None), [part(Grain::KeyDay, from, to)]);
    }

    #[test]
    fn steps_of_earlier_versions_are_read_by_the_grains_that_they_wrote() {
        let at = |text: &str| {
            let at: jiff::Timestamp = text.parse().unwrap();
            UnixMs::new(at.as_millisecond())
        };
        let (from, to) = (at("2024-07-01T00:00:00Z"), at("2024-10-02T00:00:00Z"));
        let part = |grain, from, to| Segment { grain, from, to };
        let by_key = UsageQuery {
            by: vec![Dimension::Key],
            ..UsageQuery::between(from, to, NOW)
        };
        let since = Some(at("2024-08-10T12:30:00Z"));
        let (september, october) = (at("2024-09-01T00:00:00Z"), at("2024-10-01T00:00:00Z"));
        assert_eq!(
            by_key.segments(since),
            [
                part(Grain::KeyMonth, september, october),
                part(Grain::KeyDay, from, september),
                part(Grain::KeyDay, october, to),
            ]
        );
        let next_day = at("2024-08-11T00:00:00Z");
        let by_wallet_and_model = UsageQuery {
            by: vec![Dimension::Wallet, Dimension::Model],
            ..by_key.clone()
        };
        assert_eq!(
            by_wallet_and_model.segments(since),
            [
                part(Grain::WalletTrafficMonth, september, october),
                part(Grain::WalletTrafficDay, next_day, september),
                part(Grain::CallHour, from, next_day),
                part(Grain::WalletTrafficDay, october, to),
            ]
        );
        let together = UsageQuery::between(from, to, NOW);
        let before_the_migration = Some(to.plus_ms(1));
        assert_eq!(
            together.segments(before_the_migration),
            [part(Grain::TrafficHour, from, to)]
        );
    }
}
