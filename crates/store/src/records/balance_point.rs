//! The balance of a wallet after one of its entries.

use ledger::{DAY_MS, Delta, Micro, UnixMs, Wallet};

/// A balance point is stored after every 1,024th entry of a wallet, and after the last entry of each day.
pub(crate) const POINT_STEP: i64 = 1_024;

/// The amounts of a wallet that its entries add up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Balances {
    /// Paid credits.
    pub balance: Micro,
    /// Gift credits.
    pub gift_balance: Micro,
    /// The used part of the credit line.
    pub credit_used: Micro,
}

impl Balances {
    /// The current amounts of a wallet.
    pub fn of(wallet: &Wallet) -> Self {
        Self {
            balance: wallet.balance,
            gift_balance: wallet.gift_balance,
            credit_used: wallet.credit_used,
        }
    }

    /// All credits together: paid ones and gifts, less the used credit.
    pub fn total(&self) -> Micro {
        let own = self.balance.get().saturating_add(self.gift_balance.get());
        Micro::new(own.saturating_sub(self.credit_used.get()))
    }

    /// The amounts after one more entry.
    #[must_use]
    pub fn after(self, delta: &Delta) -> Self {
        let add = |amount: Micro, change: i64| Micro::new(amount.get().saturating_add(change));
        Self {
            balance: add(self.balance, delta.balance),
            gift_balance: add(self.gift_balance, delta.gift_balance),
            credit_used: add(self.credit_used, delta.credit_used),
        }
    }

    /// The amounts before the last entry, which was `delta`.
    #[must_use]
    pub(crate) fn before(self, delta: &Delta) -> Self {
        self.after(&Delta {
            balance: delta.balance.saturating_neg(),
            gift_balance: delta.gift_balance.saturating_neg(),
            credit_used: delta.credit_used.saturating_neg(),
        })
    }
}

/// The state of a wallet after its entry `seq`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BalancePoint {
    pub seq: i64,
    /// The latest time of the entries so far. It never decreases, even if entries' own times do, so every time range is
    /// a range of entries.
    pub posted_at: UnixMs,
    pub balances: Balances,
    /// The sum of the charges of all entries so far.
    pub charged: Micro,
}

impl BalancePoint {
    /// The state after one more entry.
    #[must_use]
    pub(crate) fn after(&self, at: UnixMs, delta: &Delta, charge: Micro) -> Self {
        Self {
            seq: self.seq.saturating_add(1),
            posted_at: self.posted_at.max(at),
            balances: self.balances.after(delta),
            charged: Micro::new(self.charged.get().saturating_add(charge.get())),
        }
    }
}

/// Whether to store the point after entry `seq` at `posted_at`, now that the next entry is posted at `next`.
pub(crate) fn keeps_point(seq: i64, posted_at: UnixMs, next: UnixMs) -> bool {
    seq > 0 && (seq % POINT_STEP == 0 || day_of(next) > day_of(posted_at))
}

/// The day (UTC) of a time, counted from 1970.
fn day_of(at: UnixMs) -> i64 {
    at.get() / DAY_MS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_kept_at_the_end_of_a_day_and_of_a_step() {
        for (seq, posted_at, next, is_kept) in [
            (0, 0, DAY_MS, false),
            (1, 0, DAY_MS - 1, false),
            (1, 0, DAY_MS, true),
            (1, DAY_MS - 1, DAY_MS, true),
            // An entry may be earlier than the one before it.
            (1, 2 * DAY_MS, DAY_MS, false),
            (POINT_STEP, 5, 5, true),
            (POINT_STEP + 1, 5, 5, false),
        ] {
            let found = keeps_point(seq, UnixMs::new(posted_at), UnixMs::new(next));
            assert_eq!(found, is_kept, "{seq} {posted_at} {next}");
        }
    }

    #[test]
    fn time_does_not_go_back() {
        let point = BalancePoint::default().after(UnixMs::new(9), &Delta::default(), Micro::new(4));
        let point = point.after(UnixMs::new(7), &Delta::default(), Micro::new(1));
        assert_eq!((point.seq, point.posted_at), (2, UnixMs::new(9)));
        assert_eq!(point.charged, Micro::new(5));
    }
}
