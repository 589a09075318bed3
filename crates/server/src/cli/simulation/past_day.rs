//! The day that the demo's data begins with, so that its console has something to show: the calls of a few customers.
//!
//! [`calls`] invents them. [`write`] books them: the ledger admits and settles each call at the time that it
//! carries, so entries, balances and journal agree, and `tollgate ledger verify` passes.

use std::sync::Arc;

use engine::{Engine, Model};
use ledger::{Meter, Micro, Reservation, UnixMs};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use store::{
    Admit, Basis, Close, End, HoldId, IfLost, JournalRow, KeyRow, MeterText, RequestId, Timings,
};

use crate::cli::terminal::CommandError;

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;
/// How many calls the customers make in each hour of the day, on average.
const CALLS_BY_HOUR: [u32; 24] = [
    6, 4, 3, 3, 4, 8, 16, 28, 40, 46, 48, 44, 38, 44, 50, 52, 46, 38, 30, 26, 22, 18, 14, 10,
];
/// In this half hour of the day, a busy one, the upstream was overloaded.
const OUTAGE_HALF_HOUR: i64 = 28;
/// The same seed gives the same day, so that a demo looks the same each time.
const SEED: u64 = 20;

/// What is asked of one model: how often, and how many tokens.
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

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Answered {
        input: u64,
        cached: u64,
        output: u64,
    },
    /// Before a hold: the status and its code.
    Refused(u16, &'static str),
    /// After a hold, which was released.
    Failed(u16, &'static str),
}

/// A call that was never made.
#[derive(Debug)]
struct PastCall {
    at: UnixMs,
    /// A number to choose the key by.
    caller: usize,
    model: &'static str,
    endpoint: &'static str,
    stream: bool,
    ended: Ended,
    timings: Timings,
}

/// The calls of the day before `now`, oldest first.
fn calls(now: UnixMs) -> Vec<PastCall> {
    let mut rng = StdRng::seed_from_u64(SEED);
    let begin = now.get() - DAY_MS;
    let mut calls = Vec::new();
    for hour in 0..24 {
        let from = begin + hour * HOUR_MS;
        let of_day = usize::try_from((from / HOUR_MS).rem_euclid(24)).unwrap_or_default();
        let mean = CALLS_BY_HOUR.get(of_day).copied().unwrap_or(1);
        for _ in 0..rng.random_range(mean * 3 / 4..=mean * 5 / 4) {
            let at = UnixMs::new(from + rng.random_range(0..HOUR_MS));
            calls.push(call(at, &mut rng));
        }
    }
    calls.sort_by_key(|call| call.at);
    calls
}

fn call(at: UnixMs, rng: &mut StdRng) -> PastCall {
    let share = share(rng);
    let ended = ended(share, is_outage(at), rng);
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

fn is_outage(at: UnixMs) -> bool {
    (at.get() / (HOUR_MS / 2)).rem_euclid(48) == OUTAGE_HALF_HOUR
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
        0..500 if is_outage => Ended::Failed(503, "upstream_overloaded"),
        0..9 => Ended::Refused(429, "rate_limit_exceeded"),
        9..15 => Ended::Refused(400, "invalid_request"),
        15..21 => Ended::Failed(502, "upstream_error"),
        _ => {
            let input = rng.random_range(share.input.clone());
            // Half of the calls repeat the beginning of an earlier prompt.
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
            // Few calls wait long for their first byte.
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

/// Books the calls of the last day, made with these keys.
pub(super) async fn write(
    engine: &Engine,
    keys: &[KeyRow],
    now: UnixMs,
) -> Result<(), CommandError> {
    let catalog = engine.catalog();
    for call in calls(now) {
        let (Some(key), Some(model)) = (
            keys.get(call.caller % keys.len().max(1)),
            catalog.get(call.model),
        ) else {
            continue;
        };
        let request_id: RequestId = engine::ids::fresh("req_");
        let booked = book(engine, key, model, &call, request_id).await?;
        engine
            .store()
            .journal_append(row(&call, key, model, request_id, booked));
    }
    engine.store().flush().await?;
    Ok(())
}

/// What the ledger knows of a call: its hold, and what an answer was charged.
struct Booked {
    hold: HoldId,
    answer: Option<(MeterText, Micro)>,
}

async fn book(
    engine: &Engine,
    key: &KeyRow,
    model: &Model,
    call: &PastCall,
    request_id: RequestId,
) -> Result<Option<Booked>, CommandError> {
    let (end, answer, hold) = match call.ended {
        Ended::Refused(..) => return Ok(None),
        Ended::Failed(..) => (End::Released, None, Micro::new(1_000)),
        Ended::Answered {
            input,
            cached,
            output,
        } => {
            let meter = Meter {
                input,
                cached_input: cached,
                output,
                ..Meter::default()
            };
            let charge = model
                .price
                .price(&meter)
                .map_err(|error| CommandError::message(error.to_string()))?;
            let text = MeterText::from(&meter);
            let end = End::Settled {
                charge,
                meter: text.clone(),
                price_version: model.price_version,
                basis: Basis::Reported,
                tokens: Some(input + cached + output),
                cost: None,
            };
            (end, Some((text, charge)), charge)
        }
    };
    let admitted = engine.store().admit(Admit {
        wallet: key.wallet,
        key: key.id,
        ask: Reservation {
            hold,
            exposure: Micro::ZERO,
            tokens: 0,
            counts: true,
        },
        request_id,
        now: call.at,
    });
    let hold = admitted
        .await
        .map_err(|error| CommandError::message(format!("the demo's past day: {error}")))?
        .hold;
    engine.store().close(Close {
        hold,
        end,
        now: call.at,
        if_lost: IfLost::Charge,
    });
    Ok(Some(Booked { hold, answer }))
}

fn row(
    call: &PastCall,
    key: &KeyRow,
    model: &Model,
    request_id: RequestId,
    booked: Option<Booked>,
) -> JournalRow {
    let route = booked.is_some().then(|| model.routes.first()).flatten();
    let (status, code, notes) = match call.ended {
        Ended::Answered { .. } => (200, None, None),
        Ended::Refused(status, code) => (status, Some(code), None),
        Ended::Failed(status, code) => (
            status,
            Some(code),
            Some(format!("sim: {code} (status {status})")),
        ),
    };
    let answer = booked.as_ref().and_then(|booked| booked.answer.clone());
    JournalRow {
        at: call.at,
        request_id,
        wallet: Some(key.wallet),
        key: Some(key.id),
        endpoint: call.endpoint.into(),
        model: Arc::clone(&model.id),
        channel: route
            .filter(|_| status == 200)
            .map(|route| route.channel.name().into()),
        upstream_model: route
            .filter(|_| status == 200)
            .map(|route| Arc::clone(&route.model)),
        status,
        code: code.map(Into::into),
        stream: call.stream,
        outcome: booked.as_ref().map(|booked| {
            if booked.answer.is_some() {
                "settled"
            } else {
                "released"
            }
            .into()
        }),
        hold: booked.map(|booked| booked.hold),
        cost: None,
        charge: answer.as_ref().map_or(Micro::ZERO, |(_, charge)| *charge),
        meter: answer.map(|(meter, _)| meter),
        timings: call.timings,
        dropped_params: None,
        route_notes: notes.map(Into::into),
        request_body: None,
        response_body: None,
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

    #[test]
    fn a_day_has_answers_refusals_failures_and_one_outage() {
        let calls = calls(NOW);
        let failed = |call: &&PastCall| matches!(call.ended, Ended::Failed(503, _));
        assert!(
            calls
                .iter()
                .any(|call| matches!(call.ended, Ended::Refused(429, _)))
        );
        assert!(calls.iter().filter(failed).count() > 3);
        let outside = |call: &PastCall| !is_outage(call.at);
        assert!(!calls.iter().filter(failed).any(outside));
        let answered = calls
            .iter()
            .filter(|call| matches!(call.ended, Ended::Answered { .. }));
        assert!(answered.count() * 100 > calls.len() * 90);
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
