//! Changes of a wallet's credits by people: top-ups, gifts, debits, refunds and adjustments.
//!
//! Debits and refunds take paid credits only; a negative adjustment may also use the credit line. Gifts are never
//! taken, and open holds stay covered. A withdrawal that does not fit is refused as a whole (`docs/decisions/035`).

use std::fmt;
use std::str::FromStr;

use crate::micro::{Micro, Overflow};
use crate::wallet::{Delta, Wallet, add_amount, not_negative, subtract_amount, to_i128};

/// The ways in which people change the credits of a wallet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ManualKind {
    /// Adds paid credits, which repay the credit line first.
    TopUp,
    /// Adds promotional credits, which never repay debt.
    Gift,
    /// Takes paid credits for something other than a call.
    Debit,
    /// Takes back paid credits because the customer gets the money back.
    Refund,
    /// Corrects the balance. A positive amount adds paid credits. A negative amount takes paid credits first and then
    /// uses the credit line.
    Adjustment,
}

/// The reason why credits were not moved. The wallet is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ManualError {
    /// The amount is zero or negative. Only an adjustment may be negative.
    #[error("the amount must be above zero")]
    NotPositive,
    /// The adjustment is zero.
    #[error("the amount must not be zero")]
    Zero,
    /// The wallet has fewer credits than the amount to take, or its open holds need them.
    #[error("the wallet has {amount_max} credits that can be taken")]
    NotCovered {
        /// The maximum that can be taken now.
        amount_max: Micro,
    },
    /// The result does not fit the amount type.
    #[error(transparent)]
    Overflow(#[from] Overflow),
}

impl ManualKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [
        Self::TopUp,
        Self::Gift,
        Self::Debit,
        Self::Refund,
        Self::Adjustment,
    ];

    /// The name in the database and in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TopUp => "top_up",
            Self::Gift => "gift",
            Self::Debit => "debit",
            Self::Refund => "refund",
            Self::Adjustment => "adjustment",
        }
    }

    /// `amount` with the sign of its effect on the wallet: debits and refunds subtract it.
    pub fn signed(self, amount: Micro) -> Option<i64> {
        match self {
            Self::TopUp | Self::Gift | Self::Adjustment => Some(amount.get()),
            Self::Debit | Self::Refund => amount.get().checked_neg(),
        }
    }
}

impl fmt::Display for ManualKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error for a text that is not a kind of manual entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write `top_up`, `gift`, `debit`, `refund` or `adjustment`")]
pub struct UnknownManualKind;

impl FromStr for ManualKind {
    type Err = UnknownManualKind;

    fn from_str(word: &str) -> Result<Self, UnknownManualKind> {
        let known = Self::ALL.into_iter().find(|kind| kind.as_str() == word);
        known.ok_or(UnknownManualKind)
    }
}

impl Delta {
    /// The change of all credits together: paid credits and gifts, minus the used credit line.
    pub fn total(&self) -> i64 {
        self.balance
            .saturating_add(self.gift_balance)
            .saturating_sub(self.credit_used)
    }
}

impl Wallet {
    /// The maximum that a debit or refund can take: paid credits that no open hold needs. Gift credits cover the holds
    /// first, because calls spend them first.
    pub fn withdrawable(&self) -> Micro {
        self.balance.min(self.available())
    }

    /// The maximum that a negative adjustment can take: paid credits and the unused part of the credit line, except the
    /// part that open holds need.
    pub fn adjustable(&self) -> Micro {
        let paid = to_i128(self.balance) + to_i128(self.credit_remaining());
        not_negative(paid).min(self.total_available())
    }

    /// Moves credits. An error changes nothing.
    pub fn move_credits(&mut self, kind: ManualKind, amount: Micro) -> Result<Delta, ManualError> {
        match kind {
            ManualKind::Adjustment if amount == Micro::ZERO => return Err(ManualError::Zero),
            ManualKind::Adjustment if amount.is_negative() => {
                let taken = Micro::ZERO.checked_sub(amount).ok_or(Overflow)?;
                return self.take(taken, self.adjustable());
            }
            _ if amount <= Micro::ZERO => return Err(ManualError::NotPositive),
            _ => {}
        }
        match kind {
            ManualKind::TopUp | ManualKind::Adjustment => Ok(self.top_up(amount)?),
            ManualKind::Gift => Ok(self.gift(amount)?),
            ManualKind::Debit | ManualKind::Refund => self.take(amount, self.withdrawable()),
        }
    }

    /// Takes `amount` from the paid credits and then from the credit line. Refuses more than `amount_max`.
    fn take(&mut self, amount: Micro, amount_max: Micro) -> Result<Delta, ManualError> {
        if amount > amount_max {
            return Err(ManualError::NotCovered { amount_max });
        }
        let from_balance = amount.min(self.balance);
        let to_credit = subtract_amount(amount, from_balance)?;
        *self = Self {
            balance: subtract_amount(self.balance, from_balance)?,
            credit_used: add_amount(self.credit_used, to_credit)?,
            ..*self
        };
        Ok(Delta {
            balance: -from_balance.get(),
            gift_balance: 0,
            credit_used: to_credit.get(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wallet([balance, gift, frozen, limit, used]: [i64; 5]) -> Wallet {
        Wallet {
            balance: Micro::new(balance),
            gift_balance: Micro::new(gift),
            frozen: Micro::new(frozen),
            credit_limit: Micro::new(limit),
            credit_used: Micro::new(used),
            ..Wallet::default()
        }
    }

    #[test]
    fn a_kind_reads_back_from_its_word() {
        for kind in ManualKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
        assert_eq!("settled".parse::<ManualKind>(), Err(UnknownManualKind));
    }

    #[test]
    fn a_debit_takes_paid_credits_that_no_hold_needs() {
        for (before, most) in [
            ([10, 0, 0, 0, 0], 10),
            // Gifts are not taken, but they cover holds.
            ([10, 5, 0, 0, 0], 10),
            ([10, 5, 5, 0, 0], 10),
            ([10, 5, 7, 0, 0], 8),
            ([10, 5, 20, 0, 0], 0),
            // If the holds already reach into the credit line, nothing can be taken. The credit line
            // itself can never be taken.
            ([10, 0, 12, 20, 0], 0),
            ([10, 0, 0, 20, 0], 10),
            ([0, 5, 0, 20, 3], 0),
        ] {
            for kind in [ManualKind::Debit, ManualKind::Refund] {
                let mut after = wallet(before);
                let over = after.move_credits(kind, Micro::new(most + 1));
                let most_micro = Micro::new(most);
                assert_eq!(
                    over,
                    Err(ManualError::NotCovered {
                        amount_max: most_micro
                    })
                );
                assert_eq!(after, wallet(before), "{before:?}");
                if most > 0 {
                    let delta = after.move_credits(kind, Micro::new(most)).unwrap();
                    assert_eq!(delta.total(), -most);
                    assert_eq!(after.balance, Micro::new(before[0] - most));
                }
            }
        }
    }

    #[test]
    fn an_adjustment_takes_the_balance_and_then_the_credit_line() {
        for (before, amount, balance, used) in [
            ([10, 5, 0, 20, 0], -4, 6, 0),
            ([10, 5, 0, 20, 0], -10, 0, 0),
            ([10, 5, 0, 20, 0], -30, 0, 20),
            ([10, 0, 12, 20, 0], -18, 0, 8),
            ([0, 0, 0, 20, 7], 9, 2, 0),
            ([0, 0, 0, 20, 7], 3, 0, 4),
        ] {
            let mut after = wallet(before);
            let delta = after.move_credits(ManualKind::Adjustment, Micro::new(amount));
            assert_eq!(delta.unwrap().total(), amount);
            let expected = [balance, before[1], before[2], before[3], used];
            assert_eq!(after, wallet(expected), "{before:?} {amount}");
        }
        for (before, most) in [([10, 5, 0, 20, 0], 30), ([10, 0, 12, 20, 0], 18)] {
            let mut after = wallet(before);
            let over = after.move_credits(ManualKind::Adjustment, Micro::new(-most - 1));
            let most_micro = Micro::new(most);
            assert_eq!(
                over,
                Err(ManualError::NotCovered {
                    amount_max: most_micro
                })
            );
            assert_eq!(after, wallet(before));
        }
    }

    #[test]
    fn amounts_without_sense_are_refused() {
        let before = wallet([10, 5, 0, 20, 0]);
        for kind in ManualKind::ALL {
            let expected = match kind {
                ManualKind::Adjustment => ManualError::Zero,
                _ => ManualError::NotPositive,
            };
            let mut after = before;
            assert_eq!(after.move_credits(kind, Micro::ZERO), Err(expected));
            if kind != ManualKind::Adjustment {
                assert_eq!(after.move_credits(kind, Micro::new(-1)), Err(expected));
            }
            assert!(after.move_credits(kind, Micro::new(i64::MIN)).is_err());
            assert!(after.move_credits(kind, Micro::MAX).is_err());
            assert_eq!(after, before);
        }
    }

    proptest! {
        /// After any withdrawal, no amount is negative. The balance is zero if any of the credit line is used. Holds
        /// that were covered are still covered.
        #[test]
        fn taken_credits_leave_the_wallet_sound(
            balance in 0..50_i64, gift in 0..50_i64, frozen in 0..80_i64, limit in 0..50_i64, used in 0..60_i64,
            kind in prop::sample::select(ManualKind::ALL.to_vec()), amount in -80..80_i64,
        ) {
            let balance = if used > 0 { 0 } else { balance };
            let before = wallet([balance, gift, frozen, limit, used]);
            let mut after = before;
            match after.move_credits(kind, Micro::new(amount)) {
                Err(_) => prop_assert_eq!(after, before),
                Ok(delta) => {
                    prop_assert_eq!(Some(delta.total()), kind.signed(Micro::new(amount)));
                    prop_assert_eq!(after.balance.get() - before.balance.get(), delta.balance);
                    prop_assert_eq!(after.gift_balance.get() - before.gift_balance.get(), delta.gift_balance);
                    prop_assert_eq!(after.credit_used.get() - before.credit_used.get(), delta.credit_used);
                    let lowest = after.balance.min(after.gift_balance).min(after.credit_used);
                    prop_assert!(!lowest.is_negative());
                    prop_assert!(after.credit_used == Micro::ZERO || after.balance == Micro::ZERO);
                    let spendable = |wallet: &Wallet| {
                        to_i128(wallet.balance) + to_i128(wallet.gift_balance) + to_i128(wallet.credit_remaining())
                            - to_i128(wallet.frozen)
                    };
                    prop_assert!(spendable(&after) >= spendable(&before).min(0));
                }
            }
        }
    }
}
