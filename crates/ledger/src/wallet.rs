//! The wallet: an account's credits, and the only operations that change them.

use std::str::FromStr;

use crate::micro::{Micro, Overflow};

/// An account's credits. Every operation keeps two invariants: no amount is negative, and a wallet
/// that uses its credit line has no balance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wallet {
    /// Whether the wallet admits requests.
    pub status: WalletStatus,
    /// Paid credits.
    pub balance: Micro,
    /// Promotional credits, which are spent first.
    pub gift_balance: Micro,
    /// Credits that open holds reserve.
    pub frozen: Micro,
    /// The maximum that open calls may cost beyond their holds, summed.
    pub exposed: Micro,
    /// The approved credit line.
    pub credit_limit: Micro,
    /// The used part of the credit line. It may exceed `credit_limit`, because charges are booked in full.
    pub credit_used: Micro,
}

/// Whether a wallet admits requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum WalletStatus {
    /// The wallet admits requests.
    #[default]
    Active,
    /// The wallet refuses requests. Calls that were admitted before still settle.
    Disabled,
}

/// How an entry changes a wallet, in signed micro-credits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delta {
    /// The change of the balance.
    pub balance: i64,
    /// The change of the gift balance.
    pub gift_balance: i64,
    /// The change of the used credit line.
    pub credit_used: i64,
}

impl Wallet {
    /// The amount that can be spent without the credit line: `max(balance + gift_balance - frozen, 0)`.
    pub fn available(&self) -> Micro {
        not_negative(self.unfrozen_credits())
    }

    /// The amount that can be spent: `max(balance + gift_balance + credit_remaining - frozen, 0)`.
    pub fn total_available(&self) -> Micro {
        not_negative(self.spendable())
    }

    /// The unused part of the credit line: `max(credit_limit - credit_used, 0)`.
    pub fn credit_remaining(&self) -> Micro {
        not_negative(to_i128(self.credit_limit) - to_i128(self.credit_used))
    }

    /// Whether another `amount` can be held.
    pub(crate) fn covers(&self, amount: Micro) -> bool {
        self.spendable().max(0) >= to_i128(amount)
    }

    /// The largest worst-case cost that a new call may add. With a larger cost, the wallet could end up more than
    /// `debt_limit` below its credit line if every open call cost its maximum.
    ///
    /// A call that the wallet's own credits cover adds no debt. It is admitted even if the operator
    /// has lowered the credit line below the debt.
    pub(crate) fn headroom(&self, debt_limit: Micro) -> i128 {
        let line = to_i128(self.credit_limit) - to_i128(self.credit_used);
        self.unfrozen_credits() - to_i128(self.exposed) + (line + to_i128(debt_limit)).max(0)
    }

    /// Reserves credits for a hold. Does not check that they are available.
    pub fn freeze(&mut self, amount: Micro) -> Result<(), Overflow> {
        self.frozen = add_amount(self.frozen, amount)?;
        Ok(())
    }

    /// Returns the credits of a hold.
    pub fn unfreeze(&mut self, amount: Micro) -> Result<(), Overflow> {
        self.frozen = subtract_amount(self.frozen, amount)?;
        Ok(())
    }

    /// Adds the exposure of a call. Does not check the debt limit.
    pub fn expose(&mut self, amount: Micro) -> Result<(), Overflow> {
        self.exposed = add_amount(self.exposed, amount)?;
        Ok(())
    }

    /// Removes the exposure of a call.
    pub fn unexpose(&mut self, amount: Micro) -> Result<(), Overflow> {
        self.exposed = subtract_amount(self.exposed, amount)?;
        Ok(())
    }

    /// Books a charge: gift credits first, then the balance, then the credit line, beyond its limit if necessary.
    ///
    /// It never refuses a charge, because delivered output is booked in full. Admission fails until there is credit
    /// again. An error changes nothing.
    pub fn debit(&mut self, amount: Micro) -> Result<Delta, Overflow> {
        if amount.is_negative() {
            return Err(Overflow);
        }
        let from_gift = amount.min(self.gift_balance);
        let rest = subtract_amount(amount, from_gift)?;
        let from_balance = rest.min(self.balance);
        let to_credit = subtract_amount(rest, from_balance)?;
        *self = Self {
            gift_balance: subtract_amount(self.gift_balance, from_gift)?,
            balance: subtract_amount(self.balance, from_balance)?,
            credit_used: add_amount(self.credit_used, to_credit)?,
            ..*self
        };
        Ok(Delta {
            balance: -from_balance.get(),
            gift_balance: -from_gift.get(),
            credit_used: to_credit.get(),
        })
    }

    /// Adds credits: they repay the credit line first, and the rest becomes balance.
    pub fn top_up(&mut self, amount: Micro) -> Result<Delta, Overflow> {
        if amount.is_negative() {
            return Err(Overflow);
        }
        let to_credit = amount.min(self.credit_used);
        let to_balance = subtract_amount(amount, to_credit)?;
        self.change(Self {
            credit_used: subtract_amount(self.credit_used, to_credit)?,
            balance: add_amount(self.balance, to_balance)?,
            ..*self
        })?;
        Ok(Delta {
            balance: to_balance.get(),
            gift_balance: 0,
            credit_used: -to_credit.get(),
        })
    }

    /// Adds promotional credits, which never repay debt.
    pub fn gift(&mut self, amount: Micro) -> Result<Delta, Overflow> {
        self.change(Self {
            gift_balance: add_amount(self.gift_balance, amount)?,
            ..*self
        })?;
        Ok(Delta {
            gift_balance: amount.get(),
            ..Delta::default()
        })
    }

    /// Changes the credit line. Debt beyond the new line remains.
    pub fn set_credit_limit(&mut self, limit: Micro) -> Result<(), Overflow> {
        if limit.is_negative() {
            return Err(Overflow);
        }
        self.change(Self {
            credit_limit: limit,
            ..*self
        })
    }

    // Balance, gift balance and credit line together must fit one amount, so that no sum needs clamping.
    fn change(&mut self, next: Self) -> Result<(), Overflow> {
        let all = to_i128(next.balance) + to_i128(next.gift_balance) + to_i128(next.credit_limit);
        if all > to_i128(Micro::MAX) {
            return Err(Overflow);
        }
        *self = next;
        Ok(())
    }

    fn unfrozen_credits(&self) -> i128 {
        to_i128(self.balance) + to_i128(self.gift_balance) - to_i128(self.frozen)
    }

    fn spendable(&self) -> i128 {
        self.unfrozen_credits() + to_i128(self.credit_remaining())
    }
}

impl WalletStatus {
    /// The status as the API spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Disabled => "disabled",
        }
    }
}

/// The error for a text that is not a wallet status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a wallet is `active` or `disabled`")]
pub struct UnknownStatus;

impl FromStr for WalletStatus {
    type Err = UnknownStatus;

    fn from_str(text: &str) -> Result<Self, UnknownStatus> {
        match text {
            "active" => Ok(Self::Active),
            "disabled" => Ok(Self::Disabled),
            _ => Err(UnknownStatus),
        }
    }
}

pub(crate) fn to_i128(amount: Micro) -> i128 {
    i128::from(amount.get())
}

/// The amount, or zero if it is negative.
pub(crate) fn not_negative(amount: i128) -> Micro {
    // Wallet operations keep every sum within an `i64`, but a test may build a wallet that exceeds it.
    i64::try_from(amount.max(0)).map_or(Micro::MAX, Micro::new)
}

/// `amount + more`, for amounts that never go below zero.
pub(crate) fn add_amount(amount: Micro, more: Micro) -> Result<Micro, Overflow> {
    if more.is_negative() {
        return Err(Overflow);
    }
    amount.checked_add(more).ok_or(Overflow)
}

/// `amount - less`, for amounts that never go below zero.
pub(crate) fn subtract_amount(amount: Micro, less: Micro) -> Result<Micro, Overflow> {
    if less.is_negative() {
        return Err(Overflow);
    }
    amount
        .checked_sub(less)
        .filter(|rest| !rest.is_negative())
        .ok_or(Overflow)
}

#[cfg(test)]
mod tests;
