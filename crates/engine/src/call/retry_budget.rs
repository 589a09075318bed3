//! The node's budget of upstream retries.
//!
//! Retries multiply the load at the very time when upstreams are in trouble. So they are taken from a budget, to which
//! every call adds a tenth of a retry (R4).

use std::sync::atomic::{AtomicI64, Ordering};

const PER_RETRY: i64 = 10;
const RETRIES_MAX: i64 = 100;

/// The node's retry budget, in tenths of a retry.
#[derive(Debug)]
pub(crate) struct RetryBudget(AtomicI64);

impl RetryBudget {
    pub(crate) fn full() -> Self {
        Self(AtomicI64::new(RETRIES_MAX * PER_RETRY))
    }

    /// Adds a tenth of a retry, for one call.
    pub(crate) fn earn(&self) {
        // A load is cheaper than a write to a shared cache line, and the budget is nearly always full.
        if self.0.load(Ordering::Relaxed) < RETRIES_MAX * PER_RETRY {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes one retry from the budget; `false` if there is none left.
    pub(crate) fn take(&self) -> bool {
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                (left >= PER_RETRY).then_some(left - PER_RETRY)
            })
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_calls_earn_one_retry() {
        let budget = RetryBudget::full();
        for _ in 0..RETRIES_MAX {
            assert!(budget.take());
        }
        assert!(!budget.take());
        for _ in 0..9 {
            budget.earn();
        }
        assert!(!budget.take());
        budget.earn();
        assert!(budget.take());
    }

    #[test]
    fn the_budget_does_not_grow_past_its_cap() {
        let budget = RetryBudget::full();
        for _ in 0..1000 {
            budget.earn();
        }
        let taken = (0..1000).filter(|_| budget.take()).count();
        assert_eq!(taken, 100);
    }
}
