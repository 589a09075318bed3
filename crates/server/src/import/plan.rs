//! What an import would create, and what it cannot carry.

use std::collections::BTreeMap;

use ledger::Micro;
use store::{Digest, KeyLimits};

use super::draft::CatalogDraft;
use super::exact::Amount;

/// Everything that was read of another system.
#[derive(Debug, Default)]
pub(crate) struct ImportPlan {
    /// The system, such as `new-api`.
    pub(crate) system: &'static str,
    pub(crate) wallets: Vec<PlannedWallet>,
    pub(crate) keys: Vec<PlannedKey>,
    /// Keys that were read. More than `keys` by those that are left over.
    pub(crate) keys_read: usize,
    pub(crate) wallets_read: usize,
    /// Money that was read: balances, or what is left of budgets.
    pub(crate) money_read: Amount,
    /// What is left of the limits of keys, as it was read.
    pub(crate) limits_read: Amount,
    pub(crate) leftovers: Vec<Leftover>,
    /// Advice for the operator.
    pub(crate) notes: Vec<String>,
    pub(crate) catalog: CatalogDraft,
}

/// A wallet to create.
#[derive(Debug, Clone)]
pub(crate) struct PlannedWallet {
    /// The table and the id there: `users:17`.
    pub(crate) origin: String,
    pub(crate) name: String,
    pub(crate) is_enabled: bool,
    /// What was read, before rounding.
    pub(crate) money: Amount,
    pub(crate) balance: Micro,
    pub(crate) credit_limit: Micro,
}

/// A key to create.
#[derive(Debug, Clone)]
pub(crate) struct PlannedKey {
    /// The table and the id there: `tokens:5`.
    pub(crate) origin: String,
    /// The origin of its wallet.
    pub(crate) wallet: String,
    pub(crate) name: Option<String>,
    pub(crate) secret: PlannedSecret,
    pub(crate) is_enabled: bool,
    /// What was read of its limit, before rounding.
    pub(crate) limit_read: Amount,
    pub(crate) limits: KeyLimits,
}

/// The secret of a key.
#[derive(Debug, Clone)]
pub(crate) enum PlannedSecret {
    /// The caller's secret goes on working.
    Adopted {
        digest: Digest,
        /// A second text that is accepted too, and until when, in Unix milliseconds.
        second: Option<(Digest, i64)>,
        shown: String,
    },
    /// Nobody knows the secret, so a new one is made.
    Fresh,
}

/// Which sum something left over belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sum {
    /// Money of wallets.
    Money,
    /// Limits of keys.
    Limits,
    /// Nothing that is added up.
    Nothing,
}

/// Something that is not carried, or not as it was.
#[derive(Debug, Clone)]
pub(crate) struct Leftover {
    /// The table and the id there.
    pub(crate) origin: String,
    pub(crate) sum: Sum,
    pub(crate) amount: Amount,
    pub(crate) reason: String,
    /// Whether a key or wallet as a whole is not created.
    pub(crate) is_whole: bool,
}

impl ImportPlan {
    pub(crate) fn of(system: &'static str) -> Self {
        Self {
            system,
            ..Self::default()
        }
    }

    /// Tells of something that is carried differently, without an amount.
    pub(crate) fn tell(&mut self, origin: &str, reason: impl Into<String>) {
        self.leave(origin, Sum::Nothing, Amount::ZERO, reason);
    }

    /// Tells of an amount that is not carried.
    pub(crate) fn leave(
        &mut self,
        origin: &str,
        sum: Sum,
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

    /// Tells of a wallet or key that is not created.
    pub(crate) fn leave_out(
        &mut self,
        origin: &str,
        sum: Sum,
        amount: Amount,
        reason: impl Into<String>,
    ) {
        self.leave(origin, sum, amount, reason);
        if let Some(last) = self.leftovers.last_mut() {
            last.is_whole = true;
        }
    }

    /// How many wallets or keys are left out, by reason.
    pub(crate) fn left_out(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for leftover in self.leftovers.iter().filter(|it| it.is_whole) {
            *counts.entry(&*leftover.reason).or_default() += 1;
        }
        counts
    }
}
