//! What a task is held for, and what its end costs.

use std::sync::Arc;

use ledger::{Meter, Micro, PriceCard, PriceError, PriceKey};
use protocol::video::{Bound, Outcome, Used};
use store::{Basis, End, TaskRow};

use crate::billing::route_cost::RouteCost;
use crate::billing::usage_limits::{TOOL_CALLS_MAX, UsageLimits};
use crate::engine::Engine;

/// The tool whose calls upstreams report with a video.
const SEARCH: &str = "web_search";

/// The most that a task may use, and its hold. Videos are billed by the second or by the token. If both have a
/// price, the dearer one is held.
pub(super) fn held_for(card: &PriceCard, bound: &Bound) -> Result<(Meter, Micro), PriceError> {
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

/// What an end costs.
#[derive(Debug, PartialEq, Eq)]
enum Cost {
    Nothing,
    Charge(Micro, Box<Meter>, Basis),
    Unpriceable,
}

/// How the hold of an ended task is closed.
pub(super) fn end_of(
    card: &PriceCard,
    route_cost: Option<&RouteCost>,
    row: &TaskRow,
    outcome: &Outcome,
) -> End {
    match cost_of(card, &row.bound, outcome) {
        Cost::Nothing => End::Released,
        Cost::Charge(charge, meter, basis) => End::Settled {
            charge,
            meter: (&*meter).into(),
            price_version: row.price_version,
            basis,
            tokens: None,
            cost: route_cost.and_then(|cost| cost.of(&meter)),
        },
        Cost::Unpriceable => End::Abandoned,
    }
}

/// The charge: what the upstream reports, otherwise the seconds of a successful result, otherwise nothing.
fn cost_of(card: &PriceCard, bound: &Meter, outcome: &Outcome) -> Cost {
    let used = outcome.used;
    let tier = || bound.video_tier.clone();
    let reported = [
        (PriceKey::Usd, used.usd_ticks),
        (PriceKey::VideoTokens, used.tokens),
    ];
    let limits = limits_of(card, bound);
    let mut is_missing = false;
    for (key, quantity) in reported {
        if card.unit_price(key).is_none() {
            continue;
        }
        let Some(quantity) = quantity else {
            is_missing = true;
            continue;
        };
        // A failed task with a cost of zero was not delivered.
        if quantity == 0 && !outcome.is_success {
            return Cost::Nothing;
        }
        // A video always has tokens, so zero means that they were not reported.
        if quantity == 0 && key == PriceKey::VideoTokens {
            is_missing = true;
            continue;
        }
        let meter = with_searches(film(key, quantity, tier()), card, used);
        match card.price(&meter) {
            Ok(charge) if limits.allow(&meter, charge) => {
                return Cost::Charge(charge, Box::new(meter), Basis::Reported);
            }
            Ok(_) => {
                is_missing = true;
                tracing::error!(
                    ?meter,
                    "reported usage of a task is beyond what the model can do"
                );
            }
            Err(error) => {
                is_missing = true;
                tracing::error!(%error, "reported usage of a task cannot be priced");
            }
        }
    }
    if !outcome.is_success {
        return Cost::Nothing;
    }
    let seconds = used.seconds.filter(|seconds| {
        let meter = film(PriceKey::VideoSecond, *seconds, tier());
        let charge = card.price(&meter);
        charge.is_ok_and(|charge| limits.allow(&meter, charge))
    });
    let (key, quantity) = match card.unit_price(PriceKey::VideoSecond) {
        Some(_) => {
            let seconds = seconds.unwrap_or(bound.video_seconds);
            (PriceKey::VideoSecond, seconds)
        }
        None => (PriceKey::VideoTokens, tokens_of(bound, used.seconds)),
    };
    let basis = match seconds {
        Some(_) if !is_missing => Basis::Reported,
        _ => Basis::Counted,
    };
    let meter = with_searches(film(key, quantity, tier()), card, used);
    match card.price(&meter) {
        Ok(charge) => Cost::Charge(charge, Box::new(meter), basis),
        Err(error) => {
            tracing::error!(%error, "a task cannot be priced");
            Cost::Unpriceable
        }
    }
}

/// The tokens of a video that reports none: its share of the tokens that the hold covers.
fn tokens_of(bound: &Meter, seconds: Option<u64>) -> u64 {
    let made = seconds.filter(|seconds| *seconds < bound.video_seconds);
    let Some(made) = made else {
        return bound.video_tokens;
    };
    let tokens = u128::from(bound.video_tokens) * u128::from(made);
    let tokens = tokens.div_ceil(bound.video_seconds.into());
    u64::try_from(tokens).unwrap_or(bound.video_tokens)
}

/// The limits of a plausible report. The hold covers the dearer way of billing.
fn limits_of(card: &PriceCard, bound: &Meter) -> UsageLimits {
    let ways = [
        (PriceKey::VideoSecond, bound.video_seconds),
        (PriceKey::VideoTokens, bound.video_tokens),
    ];
    let holds = ways.map(|(key, quantity)| {
        let film = film(key, quantity, bound.video_tier.clone());
        ledger::hold_of(card, &film).unwrap_or_default()
    });
    UsageLimits::new(0, holds[0].max(holds[1]))
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

/// Adds the searches that were reported, if they have a price and the number is plausible.
fn with_searches(mut meter: Meter, card: &PriceCard, used: Used) -> Meter {
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
        let prices = self.store.prices().await.ok()?;
        let version = prices
            .into_iter()
            .find(|price| price.version == row.price_version.number())?;
        serde_json::from_str(&version.card).ok()
    }

    /// The cost card of the route that a task runs on, as it is configured now. `None` if the cost is unknown.
    pub(super) fn cost_card_of(&self, row: &TaskRow) -> Option<Arc<RouteCost>> {
        let upstream = row.upstream.as_ref()?;
        let catalog = self.catalog();
        let route = catalog.get(&row.model)?.routes.iter().find(|route| {
            *route.channel.name() == *upstream.channel && *route.model == *upstream.model
        })?;
        route.cost.clone()
    }

    /// Counts a settlement in the metrics. The store counts its charge.
    pub(super) fn count_settled(&self, end: &End) {
        if matches!(
            end,
            End::Settled {
                basis: Basis::Counted,
                ..
            }
        ) {
            self.metrics().usage_missing.inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(json: &str) -> PriceCard {
        serde_json::from_str(json).unwrap()
    }

    fn outcome(is_success: bool, used: Used) -> Outcome {
        Outcome {
            status: "ended",
            is_success,
            used,
            snapshot: Vec::new(),
        }
    }

    #[test]
    fn the_dearer_way_of_billing_is_held_for() {
        let bound = Bound {
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
    fn an_end_costs_what_is_reported_else_its_seconds_else_nothing() {
        let ticks = |usd_ticks| Used {
            usd_ticks: Some(usd_ticks),
            ..Used::default()
        };
        let tokens = |tokens| Used {
            tokens: Some(tokens),
            searches: Some(2),
            ..Used::default()
        };
        let seconds = Used {
            seconds: Some(6),
            ..Used::default()
        };
        let absurd_seconds = Used {
            seconds: Some(u64::MAX / 2),
            ..Used::default()
        };
        let absurd_searches = Used {
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
            (by_cost, true, Used::default(), 400_000, counted),
            (by_cost, false, ticks(3_000_000_000), 600_000, reported),
            (by_cost, false, ticks(0), 0, None),
            (by_cost, false, Used::default(), 0, None),
            (by_second, true, seconds, 300_000, reported),
            (by_second, true, ticks(9), 400_000, counted),
            (by_token, true, tokens(100_000), 300_000, reported),
            (by_token, true, Used::default(), 150_000, counted),
            (by_token, true, seconds, 112_500, counted),
            (by_token, true, tokens(0), 150_000, counted),
            (by_token, false, tokens(0), 0, None),
            (searching, true, tokens(100_000), 320_000, reported),
            // Beyond what can be true: the bound of the task is charged.
            (by_cost, true, ticks(u64::MAX / 2), 400_000, counted),
            (by_cost, true, ticks(500_000_000_000), 100_000_000, reported),
            (by_cost, true, ticks(500_000_000_001), 400_000, counted),
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
            let found = match cost_of(&card(prices), &bound, &outcome(is_success, used)) {
                Cost::Charge(charge, _, basis) => (charge.get(), Some(basis)),
                Cost::Nothing => (0, None),
                Cost::Unpriceable => panic!("{prices}"),
            };
            assert_eq!(found, (charge, basis), "{prices} {is_success} {used:?}");
        }
    }
}
