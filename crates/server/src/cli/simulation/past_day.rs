//! Invents the past day of the demo's data: calls of a few customers, so that the console has something to show.
//!
//! `book_day.rs` books these calls.

use ledger::{DAY_MS, HOUR_MS, MINUTE_MS, UnixMs};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use store::Timings;

/// The average number of calls in each hour of the day.
const CALLS_BY_HOUR: [u32; 24] = [
    6, 4, 3, 3, 4, 8, 16, 28, 40, 46, 48, 44, 38, 44, 50, 52, 46, 38, 30, 26, 22, 18, 14, 10,
];
/// The duration of the outage, during which the upstream is overloaded.
const OUTAGE_MS: i64 = 25 * MINUTE_MS;
/// How many hours before now the outage may begin.
const OUTAGE_HOURS_AGO: std::ops::Range<i64> = 4..20;
/// The same seed gives the same day, so that a demo looks the same each time.
const SEED: u64 = 20;

/// The share of one model in the calls, and the sizes of its requests and answers.
struct Share {
    weight: u32,
    model: &'static str,
    endpoint: &'static str,
    stream: bool,
    input: std::ops::Range<u64>,
    output: std::ops::Range<u64>,
}

const SHARES: [Share; 6] = [
    Share {
        weight: 34,
        model: "sim/chat",
        endpoint: "/v1/chat/completions",
        stream: true,
        input: 400..9_000,
        output: 60..1_400,
    },
    Share {
        weight: 14,
        model: "sim/chat",
        endpoint: "/v1/messages",
        stream: true,
        input: 2_000..24_000,
        output: 100..2_400,
    },
    Share {
        weight: 26,
        model: "sim/mini",
        endpoint: "/v1/chat/completions",
        stream: false,
        input: 80..1_800,
        output: 10..220,
    },
    Share {
        weight: 10,
        model: "sim/reason",
        endpoint: "/v1/responses",
        stream: true,
        input: 600..12_000,
        output: 900..7_000,
    },
    Share {
        weight: 8,
        model: "sim/mini",
        endpoint: "/v1beta/models/{id}:generateContent",
        stream: false,
        input: 100..2_000,
        output: 20..300,
    },
    Share {
        weight: 8,
        model: "sim/embed",
        endpoint: "/v1/embeddings",
        stream: false,
        input: 200..6_000,
        output: 0..1,
    },
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Answered {
        input: u64,
        cached: u64,
        output: u64,
    },
    /// Refused before a hold was opened, with this status and code.
    Refused(u16, &'static str),
    /// Failed with this status and code. The hold was released.
    Failed(u16, &'static str),
}

#[derive(Debug)]
pub(super) struct PastCall {
    pub(super) at: UnixMs,
    /// A number that selects the key.
    pub(super) caller: usize,
    pub(super) model: &'static str,
    pub(super) endpoint: &'static str,
    pub(super) stream: bool,
    pub(super) ended: Ended,
    pub(super) timings: Timings,
}

/// The invented calls of the day before `now`, oldest first.
pub(super) fn calls(now: UnixMs) -> Vec<PastCall> {
    let mut rng = StdRng::seed_from_u64(SEED);
    let begin = now.get() - DAY_MS;
    let outage = outage(now);
    let mut calls = Vec::new();
    for hour in 0..24 {
        let from = begin + hour * HOUR_MS;
        let mean = usual_calls(from);
        for _ in 0..rng.random_range(mean * 3 / 4..=mean * 5 / 4) {
            let at = from + rng.random_range(0..HOUR_MS);
            calls.push(call(UnixMs::new(at), outage.contains(&at), &mut rng));
        }
    }
    calls.sort_by_key(|call| call.at);
    calls
}

/// The usual number of calls in the hour that begins at this time.
fn usual_calls(from: i64) -> u32 {
    let of_day = usize::try_from((from / HOUR_MS).rem_euclid(24)).unwrap_or_default();
    CALLS_BY_HOUR.get(of_day).copied().unwrap_or(1)
}

/// The time range of the outage, in the busiest of the possible hours.
fn outage(now: UnixMs) -> std::ops::Range<i64> {
    let begins = OUTAGE_HOURS_AGO.map(|hours| now.get() - hours * HOUR_MS);
    let begin = begins
        .max_by_key(|begin| usual_calls(*begin))
        .unwrap_or(now.get() - DAY_MS / 2);
    begin..begin + OUTAGE_MS
}

fn call(at: UnixMs, is_outage: bool, rng: &mut StdRng) -> PastCall {
    let share = share(rng);
    let ended = ended(share, is_outage, rng);
    PastCall {
        at,
        caller: rng.random_range(0..1_000),
        model: share.model,
        endpoint: share.endpoint,
        stream: share.stream,
        timings: timings(ended, share.stream, rng),
        ended,
    }
}

fn share(rng: &mut StdRng) -> &'static Share {
    let all = SHARES.iter().map(|share| share.weight).sum();
    let mut left = rng.random_range(0..all);
    for share in &SHARES {
        if left < share.weight {
            return share;
        }
        left -= share.weight;
    }
    &SHARES[0]
}

fn ended(share: &Share, is_outage: bool, rng: &mut StdRng) -> Ended {
    match rng.random_range(0..1_000) {
        0..400 if is_outage => Ended::Failed(503, "upstream_overloaded"),
        0..9 => Ended::Refused(429, "rate_limit_exceeded"),
        9..15 => Ended::Refused(400, "invalid_request"),
        15..21 => Ended::Failed(502, "upstream_error"),
        _ => {
            let input = rng.random_range(share.input.clone());
            // Half of the streamed calls repeat the beginning of an earlier prompt.
            let cached = if share.stream && rng.random() {
                input / 2
            } else {
                0
            };
            Ended::Answered {
                input: input - cached,
                cached,
                output: rng.random_range(share.output.clone()),
            }
        }
    }
}

fn timings(ended: Ended, stream: bool, rng: &mut StdRng) -> Timings {
    let admitted = rng.random_range(90..400);
    let queued = rng.random_range(20..80);
    match ended {
        Ended::Refused(..) => Timings {
            total_us: admitted,
            ..Timings::default()
        },
        Ended::Failed(..) => Timings {
            admitted_us: Some(admitted),
            queued_us: Some(queued),
            upstream_us: Some(admitted + rng.random_range(20_000..90_000)),
            first_byte_us: None,
            total_us: admitted + 91_000,
        },
        Ended::Answered { output, .. } => {
            // A few calls wait long for their first byte.
            let wait = rng.random_range(60_000..420_000)
                * if rng.random_range(0..20) == 0 { 4 } else { 1 };
            let upstream = admitted + wait;
            let writing = output * rng.random_range(5_000..9_000);
            let first = if stream { upstream } else { upstream + writing };
            Timings {
                admitted_us: Some(admitted),
                queued_us: Some(queued),
                upstream_us: Some(upstream),
                first_byte_us: Some(first + 300),
                total_us: upstream + writing + 400,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMs = UnixMs::new(1_800_000_000_000);

    #[test]
    fn the_day_ends_now_and_is_told_in_order() {
        let calls = calls(NOW);
        assert!((400..900).contains(&calls.len()), "{}", calls.len());
        assert!(calls.is_sorted_by_key(|call| call.at));
        let ages: Vec<_> = calls.iter().map(|call| NOW.get() - call.at.get()).collect();
        assert!(ages.iter().all(|age| (0..=DAY_MS).contains(age)));
        assert!(ages[0] > DAY_MS - 2 * HOUR_MS && *ages.last().unwrap() < HOUR_MS);
    }

    /// At whatever hour a demo starts, the outage ended hours before. So it raises no alert.
    #[test]
    fn a_day_has_answers_refusals_failures_and_one_outage_that_is_over() {
        for hour in 0..24 {
            let now = UnixMs::new(NOW.get() + hour * HOUR_MS + 17 * MINUTE_MS);
            let calls = calls(now);
            let overloaded = |call: &&PastCall| matches!(call.ended, Ended::Failed(503, _));
            assert!(
                calls
                    .iter()
                    .any(|call| matches!(call.ended, Ended::Refused(429, _)))
            );
            let times: Vec<_> = calls.iter().filter(overloaded).map(|it| it.at).collect();
            assert!(times.len() >= 3, "{hour}: {times:?}");
            let (first, last) = (times[0].get(), times[times.len() - 1].get());
            assert!(last - first <= OUTAGE_MS, "{hour}");
            assert!(now.get() - last > 3 * HOUR_MS, "{hour}");
            let answered = calls
                .iter()
                .filter(|call| matches!(call.ended, Ended::Answered { .. }));
            assert!(answered.count() * 100 > calls.len() * 94, "{hour}");
        }
    }

    #[test]
    fn the_parts_of_a_call_take_no_longer_than_the_whole() {
        for call in calls(NOW) {
            let Timings {
                admitted_us,
                queued_us,
                upstream_us,
                first_byte_us,
                total_us,
            } = call.timings;
            let parts = [admitted_us, queued_us, upstream_us, first_byte_us];
            assert!(
                parts.into_iter().flatten().all(|part| part <= total_us),
                "{call:?}"
            );
        }
    }
}
