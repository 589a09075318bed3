//! What a task is held for, and what its end costs.

use ledger::{Meter, Micro, PriceCard, PriceError, PriceKey};
use protocol::video::{Bound, Outcome, Used};
use store::{Basis, End, TaskRow};

use crate::engine::Engine;

/// The tool whose calls upstreams report beside a film.
const SEARCH: &str = "web_search";

/// What a task may use at most, and what is frozen for it: films are billed by the second or by the token,
/// and where both have a price the dearer of the two is held.
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

/// How the hold of an ended task is closed: by what the upstream reports, by the seconds of a result
/// whose cost it does not report, else not at all.
pub(super) fn end_of(card: &PriceCard, row: &TaskRow, outcome: &Outcome) -> End {
    let used = outcome.used;
    let tier = || row.bound.video_tier.clone();
    let reported = [
        (PriceKey::Usd, used.usd_ticks),
        (PriceKey::VideoTokens, used.tokens),
    ];
    let mut is_missing = false;
    for (key, quantity) in reported {
        if card.unit_price(key).is_none() {
            continue;
        }
        let Some(quantity) = quantity else {
            is_missing = true;
            continue;
        };
        // A failed task that reports no cost was not delivered.
        if quantity == 0 && !outcome.is_success {
            return End::Released;
        }
        let meter = with_searches(film(key, quantity, tier()), card, used);
        match card.price(&meter) {
            Ok(charge) => return settled(charge, meter, Basis::Reported, row),
            Err(error) => {
                tracing::error!(task = %row.claim.task, %error, "reported usage cannot be priced");
            }
        }
    }
    if !outcome.is_success {
        return End::Released;
    }
    let (key, quantity) = match card.unit_price(PriceKey::VideoSecond) {
        Some(_) => {
            let seconds = used.seconds.unwrap_or(row.bound.video_seconds);
            (PriceKey::VideoSecond, seconds)
        }
        None => (PriceKey::VideoTokens, row.bound.video_tokens),
    };
    let basis = match used.seconds {
        Some(_) if !is_missing => Basis::Reported,
        _ => Basis::Counted,
    };
    let meter = with_searches(film(key, quantity, tier()), card, used);
    match card.price(&meter) {
        Ok(charge) => settled(charge, meter, basis, row),
        Err(error) => {
            tracing::error!(task = %row.claim.task, %error, "a task cannot be priced");
            End::Abandoned
        }
    }
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

/// Searches that have no price are not billed.
fn with_searches(mut meter: Meter, card: &PriceCard, used: Used) -> Meter {
    let searches = used.searches.filter(|searches| *searches > 0);
    if let Some(searches) = searches.filter(|_| card.prices_tool(SEARCH)) {
        meter.tools.insert(SEARCH.to_owned(), searches);
    }
    meter
}

fn settled(charge: Micro, meter: Meter, basis: Basis, row: &TaskRow) -> End {
    End::Settled {
        charge,
        meter: Box::new(meter),
        price_version: row.price_version,
        basis,
        tokens: None,
    }
}

impl Engine {
    /// The prices a task was admitted at, also when the configuration has others by now.
    pub(super) async fn card_of(&self, row: &TaskRow) -> Option<PriceCard> {
        let catalog = self.catalog();
        let model = catalog.get(&row.model);
        if let Some(model) = model.filter(|model| model.price_version == row.price_version) {
            return Some(model.price.clone());
        }
        let prices = self.store.prices().await.ok()?;
        let version = prices
            .into_iter()
            .find(|price| price.version == row.price_version)?;
        serde_json::from_str(&version.card).ok()
    }

    /// Counts a settlement for the operators.
    pub(super) fn count_settled(&self, row: &TaskRow, end: &End) {
        if let End::Settled {
            charge,
            meter,
            basis,
            ..
        } = end
        {
            if *basis == Basis::Counted {
                self.metrics().usage_missing.inc();
            }
            self.metrics()
                .settled(&row.model.as_ref().into(), meter, *charge);
        }
    }
}
