//! What the end of a task costs.

use ledger::{Meter, PriceCard, PriceError, PriceKey};
use protocol::video::Outcome;
use store::{Basis, End, TaskRow};

use crate::engine::Engine;

/// How the hold of an ended task is closed: by what the upstream reports, by the seconds of a result
/// whose cost it does not report, else not at all.
pub(super) fn end_of(card: &PriceCard, row: &TaskRow, outcome: &Outcome) -> End {
    let reported = outcome.used.usd_ticks.map(|usd_ticks| Meter {
        usd_ticks,
        ..Meter::default()
    });
    if let Some(meter) = reported {
        match card.price(&meter) {
            // A failed task that reports no cost was not delivered.
            Ok(_) if meter.is_zero() && !outcome.is_success => return End::Released,
            Ok(charge) => return settled(charge, meter, Basis::Reported, row),
            // The model is billed by the second.
            Err(PriceError::Unpriced(PriceKey::Usd)) => {}
            Err(error) => {
                tracing::error!(task = %row.claim.task, %error, "reported usage cannot be priced");
            }
        }
    }
    if !outcome.is_success {
        return End::Released;
    }
    let meter = Meter {
        video_seconds: outcome.used.seconds.unwrap_or(row.bound.video_seconds),
        video_tier: row.bound.video_tier.clone(),
        ..Meter::default()
    };
    match card.price(&meter) {
        Ok(charge) => settled(charge, meter, Basis::Counted, row),
        Err(error) => {
            tracing::error!(task = %row.claim.task, %error, "a task cannot be priced");
            End::Abandoned
        }
    }
}

fn settled(charge: ledger::Micro, meter: Meter, basis: Basis, row: &TaskRow) -> End {
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
