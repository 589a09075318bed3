//! Measures how long a route takes to start its answers.
//!
//! There is one moving average for streams and one for whole answers, because a whole answer starts only when it is
//! complete. If two calls end at the same moment, one measurement may be lost. An average tolerates that, so no lock is
//! needed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ledger::UnixMs;

/// The weight of a new measurement in the average is 1 divided by this.
const PARTS: u64 = 4;
/// The assumed time of a route whose first call failed. Otherwise the route would count as never measured and would be
/// tried first again and again.
const FAILED_US: u64 = 10_000_000;
/// The age at which a measurement is stale. A stale route may be tried again although others are faster.
const STALE_MS: i64 = 10_000;
/// One call in this many is used to measure a stale route.
const EXPLORES_ONE_IN: u64 = 20;

#[derive(Debug, Default)]
pub(crate) struct RouteLatency {
    stream: Average,
    whole: Average,
}

/// A moving average in microseconds (0 before the first measurement), and the time of the last measurement.
#[derive(Debug, Default)]
struct Average {
    micros: AtomicU64,
    measured_ms: AtomicU64,
}

impl RouteLatency {
    fn of(&self, is_streamed: bool) -> &Average {
        if is_streamed {
            &self.stream
        } else {
            &self.whole
        }
    }

    /// Records that an answer has begun after this time.
    pub(crate) fn measured(&self, is_streamed: bool, took: Duration, now: UnixMs) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX / PARTS);
        self.of(is_streamed).add(micros, now);
    }

    /// Records a call that failed before its answer began. An existing average does not change, because the breaker
    /// handles failing routes.
    pub(crate) fn failed(&self, is_streamed: bool, now: UnixMs) {
        let average = self.of(is_streamed);
        if average.micros.load(Ordering::Relaxed) == 0 {
            average.add(FAILED_US, now);
        }
    }

    /// The average in microseconds, if there is one.
    pub(crate) fn micros(&self, is_streamed: bool) -> Option<u64> {
        let micros = self.of(is_streamed).micros.load(Ordering::Relaxed);
        (micros > 0).then_some(micros)
    }

    fn measured_at(&self, is_streamed: bool) -> UnixMs {
        let ms = self.of(is_streamed).measured_ms.load(Ordering::Relaxed);
        UnixMs::new(i64::try_from(ms).unwrap_or(i64::MAX))
    }
}

impl Average {
    fn add(&self, micros: u64, now: UnixMs) {
        let before = self.micros.load(Ordering::Relaxed);
        let after = match before {
            0 => micros,
            before => before - before / PARTS + micros / PARTS,
        };
        self.micros.store(after.max(1), Ordering::Relaxed);
        let now_ms = u64::try_from(now.get()).unwrap_or(0);
        self.measured_ms.store(now_ms, Ordering::Relaxed);
    }
}

/// Ranks routes by their latency; the lowest rank is tried first. A route without a measurement comes first.
/// Occasionally the route with the oldest measurement comes first, so that we notice when it has become faster. The
/// flag of each route says whether it may be explored in this way.
pub(crate) fn latency_ranks<'l>(
    routes: impl Iterator<Item = (&'l RouteLatency, bool)> + Clone,
    is_streamed: bool,
    draw: u64,
    now: UnixMs,
) -> impl Iterator<Item = u64> {
    let explored = draw
        .is_multiple_of(EXPLORES_ONE_IN)
        .then(|| {
            let eligible = routes.clone().enumerate().filter(|(_, (_, may))| *may);
            let ages = eligible.map(|(place, (it, _))| (place, it.measured_at(is_streamed)));
            let (place, oldest) = ages.min_by_key(|(_, at)| *at)?;
            (oldest.plus_ms(STALE_MS) <= now).then_some(place)
        })
        .flatten();
    routes.enumerate().map(move |(place, (latency, _))| {
        if explored == Some(place) {
            return 0;
        }
        latency.micros(is_streamed).unwrap_or(0)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOON: UnixMs = UnixMs::new(1_700_000_000_000);

    fn measured(times_ms: &[u64]) -> RouteLatency {
        let latency = RouteLatency::default();
        for ms in times_ms {
            latency.measured(true, Duration::from_millis(*ms), NOON);
        }
        latency
    }

    fn ranks(routes: &[RouteLatency], draw: u64, now: UnixMs) -> Vec<u64> {
        let routes = routes.iter().map(|it| (it, true));
        latency_ranks(routes, true, draw, now).collect()
    }

    #[test]
    fn an_average_follows_what_is_measured() {
        let latency = measured(&[100]);
        assert_eq!(latency.micros(true), Some(100_000));
        assert_eq!(
            latency.micros(false),
            None,
            "whole answers are another matter"
        );
        latency.measured(true, Duration::from_millis(200), NOON);
        assert_eq!(latency.micros(true), Some(125_000));
        for _ in 0..40 {
            latency.measured(true, Duration::from_millis(10), NOON);
        }
        let settled = latency.micros(true).unwrap();
        assert!((10_000..10_100).contains(&settled), "{settled}");
    }

    #[test]
    fn the_fastest_is_first_and_an_unmeasured_route_before_it() {
        let routes = [measured(&[300]), measured(&[20]), measured(&[])];
        assert_eq!(ranks(&routes, 1, NOON), [300_000, 20_000, 0]);
        // A failure counts as a slow first measurement.
        routes[2].failed(true, NOON);
        assert_eq!(ranks(&routes, 1, NOON), [300_000, 20_000, FAILED_US]);
        // A failure does not change an average.
        routes[1].failed(true, NOON);
        assert_eq!(routes[1].micros(true), Some(20_000));
    }

    #[test]
    fn a_route_that_was_not_measured_for_long_is_tried_now_and_then() {
        let routes = [measured(&[300]), measured(&[20])];
        let later = NOON.plus_ms(STALE_MS);
        routes[1].measured(true, Duration::from_millis(20), later);
        let explores = |now| {
            (0..1_000)
                .filter(|draw| ranks(&routes, *draw, now)[0] == 0)
                .count()
        };
        assert_eq!(explores(later.minus_ms(1)), 0);
        assert_eq!(explores(later), 50);
        // Exploring a route renews its measurement.
        routes[0].measured(true, Duration::from_millis(300), later);
        assert_eq!(explores(later), 0);
    }

    #[test]
    fn a_backup_that_was_never_used_does_not_take_the_place_of_a_slow_route() {
        let (slow, fast, backup) = (measured(&[300]), measured(&[20]), measured(&[]));
        let later = NOON.plus_ms(STALE_MS);
        fast.measured(true, Duration::from_millis(20), later);
        let routes = [(&slow, true), (&fast, true), (&backup, false)];
        let ranks: Vec<_> = latency_ranks(routes.into_iter(), true, 0, later).collect();
        assert_eq!(ranks, [0, 20_000, 0]);
    }

    proptest! {
        /// Routes that are not explored are ranked only by their averages.
        #[test]
        fn ranks_are_the_averages(times in prop::collection::vec(1_u64..5_000, 1..8), draw: u64, age in 0_i64..60_000) {
            let routes: Vec<_> = times.iter().map(|ms| measured(&[*ms])).collect();
            let found = ranks(&routes, draw, NOON.plus_ms(age));
            let explored = found.iter().filter(|rank| **rank == 0).count();
            prop_assert!(explored <= usize::from(draw.is_multiple_of(EXPLORES_ONE_IN) && age >= STALE_MS));
            for (rank, ms) in found.iter().zip(&times) {
                prop_assert!(*rank == 0 || *rank == ms * 1_000);
            }
        }
    }
}
