//! Sums up settled calls, charges and tokens for each model, when their entries are committed.

use std::collections::HashMap;
use std::sync::Arc;

use ledger::Micro;
use parking_lot::Mutex;

use super::ids::PriceVersion;
use super::meter::TokenCounts;
use crate::cache::IdMap;

/// The sums for one model that this process has settled and committed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settled {
    pub model: Arc<str>,
    /// Calls, sessions and tasks that were settled.
    pub calls: u64,
    /// The sum that their entries charged, including steps of sessions.
    pub charge_micro: u64,
    /// The tokens that they used.
    pub tokens: TokenCounts,
}

/// The amounts that a committed entry adds to the sums of its price version.
pub(crate) struct EntryCharge {
    pub(crate) price_version: i64,
    pub(crate) charge: Micro,
    /// The tokens of the call, session or task that the entry settles.
    pub(crate) settled: Option<TokenCounts>,
}

/// Sums by price version. The writer adds a whole batch under one lock; a scrape reads them.
#[derive(Debug, Default)]
pub(crate) struct SettledSums(Mutex<IdMap<i64, Settled>>);

impl SettledSums {
    /// Sets the model of a price version, under which its calls are counted.
    pub(crate) fn name(&self, version: PriceVersion, model: &str) {
        let mut sums = self.0.lock();
        let sum = sums.entry(version.get()).or_default();
        if &*sum.model != model {
            sum.model = model.into();
        }
    }

    pub(crate) fn add(&self, entries: impl Iterator<Item = EntryCharge>) {
        let mut sums = self.0.lock();
        for entry in entries {
            let sum = sums.entry(entry.price_version).or_default();
            let charge = u64::try_from(entry.charge.get()).unwrap_or(0);
            sum.charge_micro = sum.charge_micro.saturating_add(charge);
            if let Some(tokens) = entry.settled {
                sum.calls += 1;
                sum.tokens.add(tokens);
            }
        }
    }

    /// The sums by model.
    pub(crate) fn read(&self) -> Vec<Settled> {
        let mut models: HashMap<Arc<str>, Settled> = HashMap::new();
        for sum in self.0.lock().values() {
            let total = models.entry(Arc::clone(&sum.model)).or_default();
            total.calls = total.calls.saturating_add(sum.calls);
            total.charge_micro = total.charge_micro.saturating_add(sum.charge_micro);
            total.tokens.add(sum.tokens);
        }
        let named = models.into_iter();
        named.map(|(model, sum)| Settled { model, ..sum }).collect()
    }
}
