//! The outcome of an import: its counts and sums.

use ledger::Micro;

use super::exact::Amount;
use super::plan::{ImportPlan, Leftover, PlannedKey, PlannedSecret, SumKind};

/// Counts of wallets or keys: `read` is the sum of `created`, `existing` and `left_out`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AccountCounts {
    pub(crate) read: usize,
    pub(crate) created: usize,
    /// Accounts that existed before the import.
    pub(crate) existing: usize,
    pub(crate) left_out: usize,
}

/// Amounts: `read` is the sum of `carried`, `left` and `rounding`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ImportSums {
    pub(crate) read: Amount,
    pub(crate) carried: Amount,
    /// The sum of the amounts that are not imported.
    pub(crate) left: Amount,
    /// The sum of the fractions of a micro-credit that rounding removed.
    pub(crate) rounding: Amount,
}

impl ImportSums {
    /// Adds an amount that is imported, and the difference that rounding makes.
    pub(super) fn add(&mut self, read: Amount, carried: Micro) {
        let carried = Amount::from(carried);
        self.carried = self.carried + carried;
        self.rounding = self.rounding + (read - carried);
    }

    /// The unexplained difference, which is zero unless the import has a bug.
    pub(crate) fn difference(&self) -> Amount {
        self.read - self.carried - self.left - self.rounding
    }
}

/// The result of an import, or of a dry run.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) wallets: AccountCounts,
    pub(crate) keys: AccountCounts,
    /// Created keys whose existing secret continues to work.
    pub(crate) adopted: usize,
    /// Created keys that get a new secret.
    pub(crate) reissued: usize,
    /// Balances of wallets.
    pub(crate) money: ImportSums,
    /// The remaining limits of keys.
    pub(crate) limits: ImportSums,
    pub(crate) leftovers: Vec<Leftover>,
}

impl Outcome {
    /// The outcome before the comparison with the store: what was read, and what can never be imported.
    pub(super) fn of(plan: &ImportPlan) -> Self {
        let left = |sum: SumKind| {
            let leftovers = plan.leftovers.iter().filter(|it| it.sum == sum);
            leftovers.map(|it| it.amount).sum()
        };
        let sums = |read: Amount, sum: SumKind| ImportSums {
            read,
            left: left(sum),
            ..ImportSums::default()
        };
        Self {
            wallets: AccountCounts {
                read: plan.wallets_read,
                left_out: plan.wallets_read.saturating_sub(plan.wallets.len()),
                ..AccountCounts::default()
            },
            keys: AccountCounts {
                read: plan.keys_read,
                left_out: plan.keys_read.saturating_sub(plan.keys.len()),
                ..AccountCounts::default()
            },
            adopted: 0,
            reissued: 0,
            money: sums(plan.money_read, SumKind::Money),
            limits: sums(plan.limits_read, SumKind::Limits),
            leftovers: plan.leftovers.clone(),
        }
    }

    pub(super) fn found_key(&mut self, planned: &PlannedKey) {
        self.keys.existing += 1;
        self.add_limit(planned);
    }

    pub(super) fn new_key(&mut self, planned: &PlannedKey) {
        self.keys.created += 1;
        match planned.secret {
            PlannedSecret::Adopted { .. } => self.adopted += 1,
            PlannedSecret::Fresh => self.reissued += 1,
        }
        self.add_limit(planned);
    }

    fn add_limit(&mut self, planned: &PlannedKey) {
        if let Some(limit) = planned.limits.limit {
            self.limits.add(planned.limit_read, limit);
        }
    }

    /// Whether all sums and counts add up.
    pub(crate) fn adds_up(&self) -> bool {
        let is_whole = |counts: &AccountCounts| {
            counts.read == counts.created + counts.existing + counts.left_out
        };
        self.money.difference() == Amount::ZERO
            && self.limits.difference() == Amount::ZERO
            && is_whole(&self.wallets)
            && is_whole(&self.keys)
    }
}
