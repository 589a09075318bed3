//! The wallet: who owns credits, and the only ways to move them.

use std::str::FromStr;

use crate::micro::{Micro, Overflow};

/// An account's credits. Amounts are never negative, and a wallet that uses credit has no
/// balance: every transition here keeps both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wallet {
    /// Whether the wallet admits requests.
    pub status: WalletStatus,
    /// Credits topped up.
    pub balance: Micro,
    /// Promotional credits; spent first.
    pub gift_balance: Micro,
    /// Credits that open holds reserve.
    pub frozen: Micro,
    /// The approved credit line.
    pub credit_limit: Micro,
    /// The used part of the credit line; may exceed it after an overdraft.
    pub credit_used: Micro,
}

/// Whether a wallet admits requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum WalletStatus {
    /// It does.
    #[default]
    Active,
    /// It does not; what was admitted before still settles.
    Disabled,
}

/// How an entry moves a wallet, in micro-credits with their signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delta {
    /// Change of the balance.
    pub balance: i64,
    /// Change of the gift balance.
    pub gift_balance: i64,
    /// Change of the used credit.
    pub credit_used: i64,
}

impl Wallet {
    /// What can be spent without the credit line: `max(balance + gift_balance - frozen, 0)`.
    pub fn available(&self) -> Micro {
        shown(self.own())
    }

    /// What can be spent: `max(balance + gift_balance + credit_remaining - frozen, 0)`.
    pub fn total_available(&self) -> Micro {
        shown(self.spendable())
    }

    /// What is left of the credit line: `max(credit_limit - credit_used, 0)`.
    pub fn credit_remaining(&self) -> Micro {
        shown(wide(self.credit_limit) - wide(self.credit_used))
    }

    /// Whether `amount` more can be held.
    pub(crate) fn covers(&self, amount: Micro) -> bool {
        self.spendable().max(0) >= wide(amount)
    }

    /// Reserves credits for a hold; whether they are there is asked before.
    pub fn freeze(&mut self, amount: Micro) -> Result<(), Overflow> {
        self.frozen = raised(self.frozen, amount)?;
        Ok(())
    }

    /// Gives back what a hold reserved.
    pub fn unfreeze(&mut self, amount: Micro) -> Result<(), Overflow> {
        self.frozen = lowered(self.frozen, amount)?;
        Ok(())
    }

    /// Takes a charge: gift first, then balance, then the credit line, past its limit if need be.
    ///
    /// It cannot refuse: what was delivered is booked in full, and admission fails until there is
    /// credit again. On an error nothing has changed.
    pub fn debit(&mut self, amount: Micro) -> Result<Delta, Overflow> {
        if amount.is_negative() {
            return Err(Overflow);
        }
        let from_gift = amount.min(self.gift_balance);
        let rest = lowered(amount, from_gift)?;
        let from_balance = rest.min(self.balance);
        let to_credit = lowered(rest, from_balance)?;
        *self = Self {
            gift_balance: lowered(self.gift_balance, from_gift)?,
            balance: lowered(self.balance, from_balance)?,
            credit_used: raised(self.credit_used, to_credit)?,
            ..*self
        };
        Ok(Delta {
            balance: -from_balance.get(),
            gift_balance: -from_gift.get(),
            credit_used: to_credit.get(),
        })
    }

    /// Takes in credits: repays the credit line first, the rest is balance.
    pub fn top_up(&mut self, amount: Micro) -> Result<Delta, Overflow> {
        if amount.is_negative() {
            return Err(Overflow);
        }
        let to_credit = amount.min(self.credit_used);
        let to_balance = lowered(amount, to_credit)?;
        self.change(Self {
            credit_used: lowered(self.credit_used, to_credit)?,
            balance: raised(self.balance, to_balance)?,
            ..*self
        })?;
        Ok(Delta {
            balance: to_balance.get(),
            gift_balance: 0,
            credit_used: -to_credit.get(),
        })
    }

    /// Takes in promotional credits, which never repay debt.
    pub fn gift(&mut self, amount: Micro) -> Result<Delta, Overflow> {
        self.change(Self {
            gift_balance: raised(self.gift_balance, amount)?,
            ..*self
        })?;
        Ok(Delta {
            gift_balance: amount.get(),
            ..Delta::default()
        })
    }

    /// Changes the credit line; debt beyond the new one stays.
    pub fn set_credit_limit(&mut self, limit: Micro) -> Result<(), Overflow> {
        if limit.is_negative() {
            return Err(Overflow);
        }
        self.change(Self {
            credit_limit: limit,
            ..*self
        })
    }

    // All that can ever be spent at once fits one amount, so that no sum of a wallet's parts
    // has to be clamped when it is shown.
    fn change(&mut self, next: Self) -> Result<(), Overflow> {
        let all = wide(next.balance) + wide(next.gift_balance) + wide(next.credit_limit);
        if all > wide(Micro::MAX) {
            return Err(Overflow);
        }
        *self = next;
        Ok(())
    }

    fn own(&self) -> i128 {
        wide(self.balance) + wide(self.gift_balance) - wide(self.frozen)
    }

    fn spendable(&self) -> i128 {
        self.own() + wide(self.credit_remaining())
    }
}

impl WalletStatus {
    /// The status as the contract spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Disabled => "disabled",
        }
    }
}

/// A text that is no wallet status.
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

pub(crate) fn wide(amount: Micro) -> i128 {
    i128::from(amount.get())
}

/// The amount as the contract shows it: not below zero.
pub(crate) fn shown(amount: i128) -> Micro {
    // A wallet made by its transitions never exceeds an amount; one put together by hand may.
    i64::try_from(amount.max(0)).map_or(Micro::MAX, Micro::new)
}

/// `amount + more`, for amounts that never go below zero.
pub(crate) fn raised(amount: Micro, more: Micro) -> Result<Micro, Overflow> {
    if more.is_negative() {
        return Err(Overflow);
    }
    amount.checked_add(more).ok_or(Overflow)
}

/// `amount - less`, for amounts that never go below zero.
pub(crate) fn lowered(amount: Micro, less: Micro) -> Result<Micro, Overflow> {
    if less.is_negative() {
        return Err(Overflow);
    }
    amount
        .checked_sub(less)
        .filter(|rest| !rest.is_negative())
        .ok_or(Overflow)
}
