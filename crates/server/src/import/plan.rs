//! The plan of an import: the accounts to create, and what cannot be imported.

use std::collections::BTreeMap;

use ledger::Micro;
use store::{Digest, KeyLimits};

use super::draft::CatalogDraft;
use super::exact::Amount;

/// Everything that was read from another system.
#[derive(Debug, Default)]
pub(crate) struct ImportPlan {
    /// The name of the other system, such as `new-api`.
    pub(crate) system: &'static str,
    pub(crate) wallets: Vec<PlannedWallet>,
    pub(crate) keys: Vec<PlannedKey>,
    /// The number of keys that were read, including those that are left out.
    pub(crate) keys_read: usize,
    pub(crate) wallets_read: usize,
    /// The sum of all money that was read, including money that is not imported, before rounding.
    pub(crate) money_read: Amount,
    /// The sum of the remaining limits of keys, before rounding.
    pub(crate) limits_read: Amount,
    pub(crate) leftovers: Vec<Leftover>,
    /// Advice for the operator.
    pub(crate) notes: Vec<String>,
    pub(crate) catalog: CatalogDraft,
}

#[derive(Debug, Clone)]
pub(crate) struct PlannedWallet {
    /// The table and the id in the other system: `users:17`.
    pub(crate) origin: String,
    pub(crate) name: String,
    pub(crate) is_enabled: bool,
    /// The amount that was read, before rounding.
    pub(crate) money: Amount,
    pub(crate) balance: Micro,
    pub(crate) credit_limit: Micro,
}

#[derive(Debug, Clone)]
pub(crate) struct PlannedKey {
    /// The table and the id in the other system: `tokens:5`.
    pub(crate) origin: String,
    /// The origin of its wallet.
    pub(crate) wallet: String,
    pub(crate) name: Option<String>,
    pub(crate) secret: PlannedSecret,
    pub(crate) is_enabled: bool,
    /// The remaining limit that was read, before rounding.
    pub(crate) limit_read: Amount,
    pub(crate) limits: KeyLimits,
}

#[derive(Debug, Clone)]
pub(crate) enum PlannedSecret {
    /// The existing secret keeps working.
    Adopted {
        digest: Digest,
        /// The digest of a second secret that is also accepted, and the end of its validity in Unix milliseconds.
        second: Option<(Digest, i64)>,
        shown: String,
    },
    /// The secret is unknown, so a new one is created.
    Fresh,
}

/// The sum to which the amount of a leftover belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SumKind {
    Money,
    Limits,
    /// The leftover has no amount.
    Nothing,
}

/// Something that the import leaves out or changes.
#[derive(Debug, Clone)]
pub(crate) struct Leftover {
    /// The table and the id in the other system.
    pub(crate) origin: String,
    pub(crate) sum: SumKind,
    pub(crate) amount: Amount,
    pub(crate) reason: String,
    /// Whether the leftover is a whole key or wallet that is not created.
    pub(crate) is_whole: bool,
}

impl ImportPlan {
    pub(crate) fn of(system: &'static str) -> Self {
        Self {
            system,
            ..Self::default()
        }
    }

    /// Reports something without an amount that the import leaves out or changes.
    pub(crate) fn report(&mut self, origin: &str, reason: impl Into<String>) {
        self.leave(origin, SumKind::Nothing, Amount::ZERO, reason);
    }

    /// Reports an amount that is not imported.
    pub(crate) fn leave(
        &mut self,
        origin: &str,
        sum: SumKind,
        amount: Amount,
        reason: impl Into<String>,
    ) {
        self.leftovers.push(Leftover {
            origin: origin.to_owned(),
            sum,
            amount,
            reason: reason.into(),
            is_whole: false,
        });
    }

    /// Reports a wallet or key that is not created.
    pub(crate) fn leave_out(
        &mut self,
        origin: &str,
        sum: SumKind,
        amount: Amount,
        reason: impl Into<String>,
    ) {
        self.leave(origin, sum, amount, reason);
        if let Some(last) = self.leftovers.last_mut() {
            last.is_whole = true;
        }
    }

    /// The number of wallets and keys that are left out, by reason.
    pub(crate) fn left_out(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for leftover in self.leftovers.iter().filter(|it| it.is_whole) {
            *counts.entry(&*leftover.reason).or_default() += 1;
        }
        counts
    }
}
