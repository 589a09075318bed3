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
        // The charge exceeds the credit line, but is booked in full.
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
    // The gift is spent first and the debt stays.
    after.debit(Micro::new(40)).unwrap();
    assert_eq!(after, wallet(10, 0, 20, 30));
}

#[test]
fn the_available_amount_is_never_negative() {
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
        // Overdrawn within the debt limit: what is left of that limit counts.
        ((0, 0, 20, 25), 0, 0, 7, 2),
        // Overdrawn beyond the debt limit: only the wallet's own credits count.
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
fn an_overflow_changes_nothing() {
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

/// A simple model of a wallet: single credits in the order in which they are spent, and the debt as a count.
#[derive(Default)]
struct CoinModel {
    gifts: Vec<()>,
    coins: Vec<()>,
    debt: usize,
}

impl CoinModel {
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
        let mut model = CoinModel::default();
        let mut sum = Delta::default();
        for (what, amount) in steps {
            let micro = Micro::new(amount);
            let delta = match what {
                0 => {
                    (0..amount).for_each(|_| model.spend());
                    wallet.debit(micro).unwrap()
                }
                1 => {
                    (0..amount).for_each(|_| model.earn());
                    wallet.top_up(micro).unwrap()
                }
                _ => {
                    model.gifts.extend((0..amount).map(|_| ()));
                    wallet.gift(micro).unwrap()
                }
            };
            sum.balance += delta.balance;
            sum.gift_balance += delta.gift_balance;
            sum.credit_used += delta.credit_used;
            let parts = [model.coins.len(), model.gifts.len(), model.debt]
                .map(|part| i64::try_from(part).unwrap());
            prop_assert_eq!([wallet.balance, wallet.gift_balance, wallet.credit_used].map(Micro::get), parts);
            // W2: the deltas add up to the amounts of the wallet. W4: no balance while there is debt.
            prop_assert_eq!([sum.balance, sum.gift_balance, sum.credit_used], parts);
            prop_assert!(wallet.credit_used == Micro::ZERO || wallet.balance == Micro::ZERO);
        }
    }
}
