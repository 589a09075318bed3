//! Computes the hold of a task and its final charge.

use std::sync::Arc;

use ledger::{Meter, Micro, PriceCard, PriceError, PriceKey, Reservation};
use protocol::video::{Outcome, ReportedUsage, UsageBound};
use store::{Basis, TaskRow};

use crate::billing::bill::Bill;
use crate::billing::route_cost::RouteCost;
use crate::billing::usage_limits::{TOOL_CALLS_MAX, UsageLimits};
use crate::engine::Engine;

/// The tool whose calls upstreams report together with a video.
const SEARCH: &str = "web_search";

/// The maximum usage of a task, and its hold. Videos are billed by the second or by the token. If both have a price,
/// the more expensive one is held.
pub(super) fn held_for(card: &PriceCard, bound: &UsageBound) -> Result<(Meter, Micro), PriceError> {
    let mut dearest: Option<(Meter, Micro)> = None;
    for key in [PriceKey::VideoSecond, PriceKey::VideoTokens] {
        let quantity = match key {
            PriceKey::VideoSecond => bound.seconds,
            _ => bound.tokens,
        };
        if quantity == 0 || card.unit_price(key).is_none() {
            continue;
        }
        let tier = bound.resolution.as_deref();
        let tier = tier.or_else(|| card.dearest_tier(key)).map(Box::from);
        let hold = ledger::hold_of(card, &film(key, quantity, tier.clone()))?;
        if dearest.as_ref().is_none_or(|(_, least)| hold > *least) {
            let meter = Meter {
                video_seconds: bound.seconds,
                video_tokens: bound.tokens,
                video_tier: tier,
                ..Meter::default()
            };
            dearest = Some((meter, hold));
        }
    }
    dearest.ok_or(PriceError::Unpriced(PriceKey::VideoSecond))
}

/// The maximum usage of a task, and what its creation reserves. The hold covers what the request allows. The exposure
/// covers plausible reports above the hold, which are booked in full (W6).
pub(super) fn reservation_for(
    card: &PriceCard,
    bound: &UsageBound,
    debt_limit: Micro,
) -> Result<(Meter, Reservation), PriceError> {
    let (bound, hold) = held_for(card, bound)?;
    let most = UsageLimits::new(0, hold, debt_limit).film_max(card);
    let reservation = Reservation {
        hold,
        exposure: most.checked_sub(hold).unwrap_or_default(),
        tokens: 0,
        // The hold belongs to the task, so it does not count against the key's concurrency.
        counts_in_flight: false,
    };
    Ok((bound, reservation))
}

/// How the hold of a task that has ended is closed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TaskCharge {
    Nothing,
    Bill(Box<Bill>),
    Unpriceable,
}

/// The charge: the usage that the upstream reports, otherwise the seconds or the estimated tokens of a successful
/// result, otherwise nothing. It has the price of the resolution that is reported, otherwise of the one that is held, also
/// if a report of that resolution would be beyond what is plausible.
pub(super) fn charge_of(
    card: &PriceCard,
    model: &str,
    bound: &Meter,
    outcome: &Outcome,
    debt_limit: Micro,
) -> TaskCharge {
    let used = outcome.used;
    let reported = [
        (PriceKey::Usd, used.usd_ticks),
        (PriceKey::VideoTokens, used.tokens),
    ];
    let limits = limits_of(card, bound, debt_limit);
    let mut is_missing = false;
    let mut is_malformed = false;
    for (key, quantity) in reported {
        if card.unit_price(key).is_none() {
            continue;
        }
        let Some(quantity) = quantity else {
            is_missing = true;
            continue;
        };
        // A failed task with zero usage delivered nothing.
        if quantity == 0 && !outcome.is_success {
            return TaskCharge::Nothing;
        }
        // Every video has tokens, so zero means that the upstream did not report them.
        if quantity == 0 && key == PriceKey::VideoTokens {
            is_missing = true;
            continue;
        }
        let tier = tier_of(bound, used);
        let meter = with_searches(film(key, quantity, tier), card, used);
        if let Some(bill) = Bill::reported(meter, card, &limits, model) {
            return TaskCharge::Bill(Box::new(bill));
        }
        is_missing = true;
        is_malformed = true;
    }
    if !outcome.is_success {
        return TaskCharge::Nothing;
    }
    let (meter, is_told) = film_without_report(card, bound, used, &limits);
    let is_missing = is_missing || !is_told;
    let meter = with_searches(meter, card, used);
    match card.price(&meter) {
        Ok(charge) => TaskCharge::Bill(Box::new(Bill {
            meter,
            basis: if is_missing {
                Basis::Counted
            } else {
                Basis::Reported
            },
            charge,
            is_missing,
            is_malformed,
        })),
        Err(error) => {
            tracing::error!(model, %error, "a task cannot be priced");
            TaskCharge::Unpriceable
        }
    }
}

/// The film of a successful task whose cost or tokens are not known, and whether its seconds are those of the report:
/// otherwise its quantity is that of the hold. A reported resolution is not believed if it makes the film cost more than
/// a report may.
fn film_without_report(
    card: &PriceCard,
    bound: &Meter,
    used: ReportedUsage,
    limits: &UsageLimits,
) -> (Meter, bool) {
    let believed = |key, quantity| {
        let meter = film(key, quantity, tier_of(bound, used));
        let charge = card.price(&meter);
        let is_believed = charge.is_ok_and(|charge| limits.allow(&meter, charge));
        is_believed.then_some(meter)
    };
    let (key, quantity) = match card.unit_price(PriceKey::VideoSecond) {
        Some(_) => (PriceKey::VideoSecond, bound.video_seconds),
        None => (PriceKey::VideoTokens, tokens_of(bound, used.seconds)),
    };
    let seconds = used.seconds.filter(|_| key == PriceKey::VideoSecond);
    if let Some(told) = seconds.and_then(|seconds| believed(key, seconds)) {
        return (told, true);
    }
    let meter = believed(key, quantity);
    let meter = meter.unwrap_or_else(|| film(key, quantity, bound.video_tier.clone()));
    (meter, false)
}

/// The resolution that is reported, otherwise the one that is held.
fn tier_of(bound: &Meter, used: ReportedUsage) -> Option<Box<str>> {
    let reported = used.resolution.map(Box::from);
    reported.or_else(|| bound.video_tier.clone())
}

/// The tokens of a video without a token report: the held tokens, in proportion to its duration.
fn tokens_of(bound: &Meter, seconds: Option<u64>) -> u64 {
    let made = seconds.filter(|seconds| *seconds < bound.video_seconds);
    let Some(made) = made else {
        return bound.video_tokens;
    };
    let tokens = u128::from(bound.video_tokens) * u128::from(made);
    let tokens = tokens.div_ceil(bound.video_seconds.into());
    u64::try_from(tokens).unwrap_or(bound.video_tokens)
}

/// The limits of plausible reports. They follow from the hold, which covers the more expensive way of billing.
fn limits_of(card: &PriceCard, bound: &Meter, debt_limit: Micro) -> UsageLimits {
    let ways = [
        (PriceKey::VideoSecond, bound.video_seconds),
        (PriceKey::VideoTokens, bound.video_tokens),
    ];
    let holds = ways.map(|(key, quantity)| {
        let film = film(key, quantity, bound.video_tier.clone());
        ledger::hold_of(card, &film).unwrap_or_default()
    });
    UsageLimits::new(0, holds[0].max(holds[1]), debt_limit)
}

fn film(key: PriceKey, quantity: u64, tier: Option<Box<str>>) -> Meter {
    let none = Meter::default();
    match key {
        PriceKey::Usd => Meter {
            usd_ticks: quantity,
            ..none
        },
        PriceKey::VideoTokens => Meter {
            video_tokens: quantity,
            video_tier: tier,
            ..none
        },
        _ => Meter {
            video_seconds: quantity,
            video_tier: tier,
            ..none
        },
    }
}

/// Adds the reported searches, if they have a price and their number is plausible.
fn with_searches(mut meter: Meter, card: &PriceCard, used: ReportedUsage) -> Meter {
    let searches = used
        .searches
        .filter(|searches| (1..=TOOL_CALLS_MAX).contains(searches));
    if let Some(searches) = searches.filter(|_| card.prices_tool(SEARCH)) {
        meter.tools.insert(SEARCH.to_owned(), searches);
    }
    meter
}

impl Engine {
    /// The price card that the task was admitted with, even if the configuration has changed since.
    pub(super) async fn card_of(&self, row: &TaskRow) -> Option<PriceCard> {
        let catalog = self.catalog();
        let model = catalog.get(&row.model);
        if let Some(model) = model.filter(|model| model.price_version == row.price_version) {
            return Some(model.price.clone());
        }
        let version = self.store.price(row.price_version.number()).await.ok()??;
        serde_json::from_str(&version.card).ok()
    }

    /// The cost card of the route that a task runs on, as configured now. `None` if the cost is unknown.
    pub(super) fn cost_card_of(&self, row: &TaskRow) -> Option<Arc<RouteCost>> {
        let upstream = row.upstream.as_ref()?;
        let catalog = self.catalog();
        let route = catalog.get(&row.model)?.routes.iter().find(|route| {
            *route.channel.name() == *upstream.channel && *route.model == *upstream.model
        })?;
        route.cost.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEBT_LIMIT: Micro = store::Settings::DEBT_LIMIT;
    const TIERED_TOKENS: &str = r#"{"video_tokens":{"default":"20","480p":"10","4k":"100"}}"#;
    const TIERED_SECONDS: &str = r#"{"video_second":{"default":"0.2","480p":"0.1","4k":"1"}}"#;

    fn card(json: &str) -> PriceCard {
        serde_json::from_str(json).unwrap()
    }

    fn outcome(is_success: bool, used: ReportedUsage) -> Outcome {
        Outcome {
            status: "ended",
            is_success,
            used,
            snapshot: Vec::new(),
        }
    }

    #[test]
    fn the_dearer_way_of_billing_is_held_for() {
        let bound = UsageBound {
            seconds: 10,
            tokens: 100_000,
            resolution: Some("720p".to_owned()),
        };
        for (prices, hold) in [
            (r#"{"video_second":"0.05"}"#, 500_000),
            (
                r#"{"video_second":{"default":"0.05","720p":"0.07"}}"#,
                700_000,
            ),
            (r#"{"video_tokens":"3"}"#, 300_000),
            (r#"{"video_second":"0.05","video_tokens":"3"}"#, 500_000),
            (r#"{"video_second":"0.05","video_tokens":"8"}"#, 800_000),
            (r#"{"video_second":"0.05","usd":"2"}"#, 500_000),
        ] {
            let (meter, held) = held_for(&card(prices), &bound).unwrap();
            assert_eq!(held, Micro::new(hold), "{prices}");
            assert_eq!((meter.video_seconds, meter.video_tokens), (10, 100_000));
        }
        assert!(held_for(&card(r#"{"usd":"2"}"#), &bound).is_err());
    }

    #[test]
    fn hold_and_exposure_are_the_most_that_a_report_may_charge() {
        let resolutions = [None, Some("480p"), Some("720p"), Some("4k")];
        let held = |resolution: Option<&str>| UsageBound {
            seconds: 8,
            tokens: 50_000,
            resolution: resolution.map(str::to_owned),
        };
        for (prices, resolution) in [
            (r#"{"video_second":"0.05","usd":"2"}"#, None),
            (r#"{"video_second":"0.0001","usd":"2"}"#, None),
            (r#"{"video_second":"9","usd":"2"}"#, None),
            (r#"{"video_tokens":"3"}"#, None),
            (r#"{"video_tokens":"300"}"#, None),
            (TIERED_TOKENS, None),
            (TIERED_TOKENS, Some("480p")),
            (TIERED_SECONDS, Some("480p")),
            (TIERED_SECONDS, Some("4k")),
        ] {
            let bound = held(resolution);
            for debt_limit in [0, 700_000, 10_000_000].map(Micro::new) {
                let card = card(prices);
                let (meter, ask) = reservation_for(&card, &bound, debt_limit).unwrap();
                let most = ask.hold.checked_add(ask.exposure).unwrap();
                assert!(ask.exposure <= debt_limit, "{prices} {debt_limit}");
                let mut highest = Micro::ZERO;
                for step in 0..2_000_u64 {
                    let used = ReportedUsage {
                        usd_ticks: Some(step * 200_000_000),
                        tokens: Some(step * 500),
                        seconds: (step % 3 == 0).then_some(step / 20),
                        resolution: resolutions[usize::try_from(step).unwrap() % 4],
                        ..ReportedUsage::default()
                    };
                    let outcome = outcome(true, used);
                    match charge_of(&card, "a/film", &meter, &outcome, debt_limit) {
                        TaskCharge::Bill(bill) => highest = highest.max(bill.charge),
                        other => panic!("{other:?}"),
                    }
                }
                let case = format!("{prices} {resolution:?} {debt_limit}: {highest}");
                assert!(highest <= most, "{case}");
                assert!(highest >= ask.hold, "{case}");
            }
        }
    }

    #[test]
    fn an_end_costs_what_is_reported_else_its_seconds_else_nothing() {
        let ticks = |usd_ticks| ReportedUsage {
            usd_ticks: Some(usd_ticks),
            ..ReportedUsage::default()
        };
        let tokens = |tokens| ReportedUsage {
            tokens: Some(tokens),
            searches: Some(2),
            ..ReportedUsage::default()
        };
        let seconds = ReportedUsage {
            seconds: Some(6),
            ..ReportedUsage::default()
        };
        let absurd_seconds = ReportedUsage {
            seconds: Some(u64::MAX / 2),
            ..ReportedUsage::default()
        };
        let absurd_searches = ReportedUsage {
            searches: Some(u64::MAX / 2),
            ..tokens(100_000)
        };
        let (by_cost, by_second, by_token, searching) = (
            r#"{"video_second":"0.05","usd":"2"}"#,
            r#"{"video_second":"0.05"}"#,
            r#"{"video_tokens":"3"}"#,
            r#"{"video_tokens":"3","tools":{"web_search":"0.01"}}"#,
        );
        let (reported, counted) = (Some(Basis::Reported), Some(Basis::Counted));
        for (prices, is_success, used, charge, basis) in [
            (by_cost, true, ticks(3_000_000_000), 600_000, reported),
            (by_cost, true, ticks(0), 0, reported),
            (by_cost, true, seconds, 300_000, counted),
            (by_cost, true, ReportedUsage::default(), 400_000, counted),
            (by_cost, false, ticks(3_000_000_000), 600_000, reported),
            (by_cost, false, ticks(0), 0, None),
            (by_cost, false, ReportedUsage::default(), 0, None),
            (by_second, true, seconds, 300_000, reported),
            (by_second, true, ticks(9), 400_000, counted),
            (by_token, true, tokens(100_000), 300_000, reported),
            (by_token, true, ReportedUsage::default(), 150_000, counted),
            (by_token, true, seconds, 112_500, counted),
            (by_token, true, tokens(0), 150_000, counted),
            (by_token, false, tokens(0), 0, None),
            (searching, true, tokens(100_000), 320_000, reported),
            // The report is implausible, so the bound of the task is charged.
            (by_cost, true, ticks(u64::MAX / 2), 400_000, counted),
            (by_cost, true, ticks(8_000_000_000), 1_600_000, reported),
            (by_cost, true, ticks(8_000_000_001), 400_000, counted),
            (by_cost, false, ticks(u64::MAX / 2), 0, None),
            (by_second, true, absurd_seconds, 400_000, counted),
            (by_token, true, tokens(u64::MAX / 2), 150_000, counted),
            (searching, true, absurd_searches, 300_000, reported),
        ] {
            let bound = Meter {
                video_seconds: 8,
                video_tokens: 50_000,
                ..Meter::default()
            };
            let outcome = outcome(is_success, used);
            let charged = charge_of(&card(prices), "a/film", &bound, &outcome, DEBT_LIMIT);
            let found = match charged {
                TaskCharge::Bill(bill) => {
                    assert_eq!(bill.is_missing, bill.basis == Basis::Counted);
                    (bill.charge.get(), Some(bill.basis))
                }
                TaskCharge::Nothing => (0, None),
                TaskCharge::Unpriceable => panic!("{prices}"),
            };
            assert_eq!(found, (charge, basis), "{prices} {is_success} {used:?}");
        }
    }

    #[test]
    fn an_implausible_report_is_counted_as_malformed() {
        let bound = Meter {
            video_seconds: 8,
            video_tokens: 50_000,
            ..Meter::default()
        };
        for (tokens, is_malformed) in [
            (Some(50_000), false),
            (Some(u64::MAX / 2), true),
            (Some(0), false),
            (None, false),
        ] {
            let used = ReportedUsage {
                tokens,
                ..ReportedUsage::default()
            };
            let card = card(r#"{"video_tokens":"3"}"#);
            let charged = charge_of(&card, "a/film", &bound, &outcome(true, used), DEBT_LIMIT);
            let TaskCharge::Bill(bill) = charged else {
                panic!("{tokens:?}");
            };
            assert_eq!(bill.is_malformed, is_malformed, "{tokens:?}");
            assert_eq!(bill.is_missing, tokens != Some(50_000), "{tokens:?}");
        }
    }
}
