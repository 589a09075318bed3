//! The wallet: an account's credits, and the only operations that change them.

use std::str::FromStr;

use crate::micro::{Micro, Overflow};

/// An account's credits. Every operation keeps two invariants: no amount is negative, and a wallet
/// that uses its credit line has no balance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wallet {
    /// Whether the wallet admits requests.
    pub status: WalletStatus,
    /// Credits topped up.
    pub balance: Micro,
    /// Promotional credits, which are spent first.
    pub gift_balance: Micro,
    /// Credits that open holds reserve.
    pub frozen: Micro,
    /// The most that the calls of open holds may cost beyond their holds.
    pub exposed: Micro,
    /// The approved credit line.
    pub credit_limit: Micro,
    /// The used part of the credit line. It may exceed the line after an overdraft.
    pub credit_used: Micro,
}

/// Whether a wallet admits requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum WalletStatus {
    /// It admits requests.
    #[default]
    Active,
    /// It does not. Calls that were admitted before still settle.
    Disabled,
}

/// How an entry changes a wallet, in signed micro-credits.
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
        not_negative(self.own())
    }

    /// What can be spent: `max(balance + gift_balance + credit_remaining - frozen, 0)`.
    pub fn total_available(&self) -> Micro {
        not_negative(self.spendable())
    }

    /// What is left of the credit line: `max(credit_limit - credit_used, 0)`.
    pub fn credit_remaining(&self) -> Micro {
        not_negative(to_i128(self.credit_limit) - to_i128(self.credit_used))
    }

    /// Whether `amount` more can be held.
    pub(crate) fn covers(&self, amount: Micro) -> bool {
        self.spendable().max(0) >= to_i128(amount)
    }

    /// How much the worst case of a new call may be. If it were more, and every open call cost the
    /// most that it may, the wallet would fall further than `debt_limit` below its credit line.
    ///
    /// What the wallet's own credits cover adds no debt. It is admitted even if the operator has
    /// lowered the credit line below the debt.
    pub(crate) fn headroom(&self, debt_limit: Micro) -> i128 {
        let line = to_i128(self.credit_limit) - to_i128(self.credit_used);
        self.own() - to_i128(self.exposed) + (line + to_i128(debt_limit)).max(0)
    }

    /// Reserves credits for a hold. The caller has checked that they are available.
    pub fn freeze(&mut self, amount: Micro) -> Result<(), Overflow> {
        self.frozen = add_amount(self.frozen, amount)?;
        Ok(())
    }

    /// Returns the credits of a hold.
    pub fn unfreeze(&mut self, amount: Micro) -> Result<(), Overflow> {
        self.frozen = subtract_amount(self.frozen, amount)?;
        Ok(())
    }

    /// Adds the exposure of a call. The caller has checked the debt limit.
    pub fn expose(&mut self, amount: Micro) -> Result<(), Overflow> {
        self.exposed = add_amount(self.exposed, amount)?;
        Ok(())
    }

    /// Removes the exposure of a call.
    pub fn unexpose(&mut self, amount: Micro) -> Result<(), Overflow> {
        self.exposed = subtract_amount(self.exposed, amount)?;
        Ok(())
    }

    /// Books a charge: gift first, then balance, then the credit line, beyond its limit if
    /// necessary.
    ///
    /// It never refuses: what was delivered is booked in full, and admission fails until there is
    /// credit again. An error changes nothing.
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

    // Balance, gift and credit line together must fit one amount, so that no sum of them has to be
    // clamped.
    fn change(&mut self, next: Self) -> Result<(), Overflow> {
        let all = to_i128(next.balance) + to_i128(next.gift_balance) + to_i128(next.credit_limit);
        if all > to_i128(Micro::MAX) {
            return Err(Overflow);
        }
        *self = next;
        Ok(())
    }

    fn own(&self) -> i128 {
        to_i128(self.balance) + to_i128(self.gift_balance) - to_i128(self.frozen)
    }

    fn spendable(&self) -> i128 {
        self.own() + to_i128(self.credit_remaining())
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

/// A text that is not a wallet status.
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
    // The operations above never exceed an amount, but a wallet built by hand may.
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wallet(gift: i64, balance: i64, credit_limit: i64, credit_used: i64) -> Wallet {
        Wallet {
            gift_balance: Micro::new(gift),
            balance: Micro::new(balance),
            credit_limit: Micro::new(credit_limit),
            credit_used: Micro::new(credit_used),
            ..Wallet::default()
        }
    }

    #[test]
    fn a_charge_takes_gift_then_balance_then_credit() {
        for (charge, gift, balance, credit_used) in [
            (0, 5, 10, 0),
            (4, 1, 10, 0),
            (5, 0, 10, 0),
            (6, 0, 9, 0),
            (15, 0, 0, 0),
            (16, 0, 0, 1),
            (35, 0, 0, 20),
            // Beyond the credit line, but booked.
            (36, 0, 0, 21),
            (1_000, 0, 0, 985),
        ] {
            let mut after = wallet(5, 10, 20, 0);
            let delta = after.debit(Micro::new(charge)).unwrap();
            assert_eq!(after, wallet(gift, balance, 20, credit_used), "{charge}");
            let expected = Delta {
                gift_balance: gift - 5,
                balance: balance - 10,
                credit_used,
            };
            assert_eq!(delta, expected, "{charge}");
        }
    }

    #[test]
    fn a_top_up_repays_credit_first() {
        for (amount, credit_used, balance) in [(0, 30, 0), (10, 20, 0), (30, 0, 0), (31, 0, 1)] {
            let mut after = wallet(0, 0, 20, 30);
            let delta = after.top_up(Micro::new(amount)).unwrap();
            assert_eq!(after, wallet(0, balance, 20, credit_used), "{amount}");
            let expected = Delta {
                gift_balance: 0,
                balance,
                credit_used: credit_used - 30,
            };
            assert_eq!(delta, expected, "{amount}");
        }
    }

    #[test]
    fn a_gift_never_repays_debt() {
        let mut after = wallet(0, 0, 20, 30);
        let delta = after.gift(Micro::new(50)).unwrap();
        assert_eq!(after, wallet(50, 0, 20, 30));
        assert_eq!((delta.gift_balance, delta.credit_used), (50, 0));
        // It is spent first and the debt stays.
        after.debit(Micro::new(40)).unwrap();
        assert_eq!(after, wallet(10, 0, 20, 30));
    }

    #[test]
    fn what_can_be_spent_is_never_shown_below_zero() {
        let overdrawn = wallet(0, 0, 20, 30);
        assert_eq!(overdrawn.credit_remaining(), Micro::ZERO);
        assert_eq!(overdrawn.total_available(), Micro::ZERO);
        let mut held = wallet(1, 2, 20, 0);
        held.freeze(Micro::new(5)).unwrap();
        assert_eq!(held.available(), Micro::ZERO);
        assert_eq!(held.total_available(), Micro::new(18));
    }

    #[test]
    fn the_headroom_is_own_credits_and_what_is_left_above_the_debt_limit() {
        for (parts, frozen, exposed, debt_limit, headroom) in [
            ((5, 10, 20, 0), 0, 0, 0, 35),
            ((5, 10, 20, 0), 0, 0, 7, 42),
            ((5, 10, 20, 0), 3, 4, 7, 35),
            ((0, 0, 20, 15), 0, 0, 7, 12),
            ((0, 0, 0, 0), 0, 10, 7, -3),
            // Overdrawn within the limit: the rest of it.
            ((0, 0, 20, 25), 0, 0, 7, 2),
            // Overdrawn beyond it: own credits alone.
            ((6, 0, 20, 30), 0, 0, 7, 6),
            ((6, 0, 20, 30), 2, 3, 7, 1),
            (
                (0, i64::MAX, 0, 0),
                0,
                0,
                i64::MAX,
                2 * i128::from(i64::MAX),
            ),
        ] {
            let (gift, balance, limit, used) = parts;
            let wallet = Wallet {
                frozen: Micro::new(frozen),
                exposed: Micro::new(exposed),
                ..wallet(gift, balance, limit, used)
            };
            let found = wallet.headroom(Micro::new(debt_limit));
            assert_eq!(found, headroom, "{wallet:?} {debt_limit}");
        }
    }

    #[test]
    fn what_does_not_fit_changes_nothing() {
        type Step = fn(&mut Wallet, Micro) -> Result<(), Overflow>;
        let max = i64::MAX;
        let debit: Step = |wallet, amount| wallet.debit(amount).map(drop);
        let top_up: Step = |wallet, amount| wallet.top_up(amount).map(drop);
        let gift: Step = |wallet, amount| wallet.gift(amount).map(drop);
        let limit: Step = |wallet, amount| wallet.set_credit_limit(amount);
        let freeze: Step = |wallet, amount| wallet.freeze(amount);
        let unfreeze: Step = |wallet, amount| wallet.unfreeze(amount);
        let expose: Step = |wallet, amount| wallet.expose(amount);
        let unexpose: Step = |wallet, amount| wallet.unexpose(amount);
        for (before, step, amount) in [
            (wallet(1, 2, 0, 0), debit, -1),
            (wallet(0, 0, 0, 1), debit, max),
            (wallet(5, 0, 0, max), debit, 6),
            (wallet(1, 2, 0, 0), top_up, -1),
            (wallet(0, 1, 0, 0), top_up, max),
            (wallet(1, 0, 0, 0), top_up, max),
            (wallet(0, 0, 1, 0), top_up, max),
            (wallet(1, 2, 0, 0), gift, -1),
            (wallet(0, 1, 0, 0), gift, max),
            (wallet(0, 1, 0, 0), limit, max),
            (wallet(0, 1, 0, 0), limit, -1),
            (wallet(0, 1, 0, 0), freeze, -1),
            (wallet(0, 1, 0, 0), unfreeze, -1),
            (wallet(0, 1, 0, 0), unfreeze, 1),
            (wallet(0, 1, 0, 0), unfreeze, i64::MIN),
            (wallet(0, 1, 0, 0), expose, -1),
            (wallet(0, 1, 0, 0), unexpose, -1),
            (wallet(0, 1, 0, 0), unexpose, 1),
        ] {
            let mut after = before;
            assert_eq!(
                step(&mut after, Micro::new(amount)),
                Err(Overflow),
                "{before:?} {amount}"
            );
            assert_eq!(after, before);
        }
    }

    #[test]
    fn a_status_is_read_as_it_is_shown() {
        for status in [WalletStatus::Active, WalletStatus::Disabled] {
            assert_eq!(status.as_str().parse(), Ok(status));
        }
        assert_eq!("Active".parse::<WalletStatus>(), Err(UnknownStatus));
    }

    /// A wallet as a purse: single credits in the order they are spent, and tallied debt.
    #[derive(Default)]
    struct Purse {
        gifts: Vec<()>,
        coins: Vec<()>,
        debt: usize,
    }

    impl Purse {
        fn spend(&mut self) {
            if self.gifts.pop().is_none() && self.coins.pop().is_none() {
                self.debt += 1;
            }
        }

        fn earn(&mut self) {
            if self.debt > 0 {
                self.debt -= 1;
            } else {
                self.coins.push(());
            }
        }
    }

    proptest! {
        #[test]
        fn a_wallet_is_a_purse_of_single_credits(
            steps in prop::collection::vec((0_u8..3, 0_i64..200), 1..50),
        ) {
            let mut wallet = wallet(0, 0, 100, 0);
            let mut purse = Purse::default();
            let mut sum = Delta::default();
            for (what, amount) in steps {
                let micro = Micro::new(amount);
                let delta = match what {
                    0 => {
                        (0..amount).for_each(|_| purse.spend());
                        wallet.debit(micro).unwrap()
                    }
                    1 => {
                        (0..amount).for_each(|_| purse.earn());
                        wallet.top_up(micro).unwrap()
                    }
                    _ => {
                        purse.gifts.extend((0..amount).map(|_| ()));
                        wallet.gift(micro).unwrap()
                    }
                };
                sum.balance += delta.balance;
                sum.gift_balance += delta.gift_balance;
                sum.credit_used += delta.credit_used;
                let parts = [purse.coins.len(), purse.gifts.len(), purse.debt]
                    .map(|part| i64::try_from(part).unwrap());
                prop_assert_eq!([wallet.balance, wallet.gift_balance, wallet.credit_used].map(Micro::get), parts);
                // W2: the deltas add up to the columns. W4: no balance beside debt.
                prop_assert_eq!([sum.balance, sum.gift_balance, sum.credit_used], parts);
                prop_assert!(wallet.credit_used == Micro::ZERO || wallet.balance == Micro::ZERO);
            }
        }
    }
}
