//! Charges a session in steps. Each step books the usage so far and extends the hold.
//!
//! Amounts are totals since the session began, not increments. So the amount of a session is
//! rounded once, and it does no harm if a step is lost or repeated.

use crate::admit::{Refusal, Reservation, check_usable};
use crate::key::Key;
use crate::micro::{Micro, Overflow};
use crate::time::UnixMs;
use crate::wallet::{Delta, Wallet, add_amount, not_negative, subtract_amount, to_i128};

/// A step that a session requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The price of all usage so far.
    pub used: Micro,
    /// The total that the hold should cover, including amounts that are already booked.
    pub wanted: Micro,
    /// The minimum that must be covered. Otherwise the step is refused.
    pub least: Micro,
}

/// The result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BookedStep {
    /// The charge of this step.
    pub charge: Micro,
    /// How the charge changed the wallet.
    pub delta: Delta,
    /// The new amount of the hold.
    pub hold: Micro,
}

/// Books the usage of a session beyond `booked`, and extends the hold to the wanted amount, or as
/// far as the wallet can pay.
///
/// The step is refused if the key is disabled or expired or the wallet is disabled, so the session
/// ends at its next step (K2). A session pays in advance, so it has no exposure; its steps leave
/// room for the exposure of other calls. A refusal changes nothing.
pub fn step(
    wallet: &mut Wallet,
    key: &mut Key,
    held: &Reservation,
    booked: Micro,
    step: &Step,
    debt_limit: Micro,
    now: UnixMs,
) -> Result<BookedStep, Refusal> {
    check_usable(wallet, key, now)?;
    let broken = |_: Overflow| Refusal::InsufficientQuota;
    let (mut next_wallet, mut next_key) = (*wallet, *key);
    next_wallet.unfreeze(held.hold).map_err(broken)?;
    next_key.frozen = subtract_amount(key.frozen, held.hold).map_err(broken)?;
    let charge = not_negative(to_i128(step.used) - to_i128(booked));
    // `least` and `wanted` include the charge and the new hold.
    let least = to_i128(step.least).max(to_i128(step.used)) - to_i128(booked);
    let wanted = (to_i128(step.wanted) - to_i128(booked)).max(least);
    if to_i128(next_wallet.total_available()) < least {
        return Err(Refusal::InsufficientQuota);
    }
    if next_key.holdable().is_some_and(|left| left < least) {
        return Err(Refusal::KeyLimitReached);
    }
    let headroom = next_wallet.headroom(debt_limit);
    if least > 0 && headroom < least {
        return Err(Refusal::DebtLimitReached);
    }
    let most = next_key.holdable().map_or(wanted, |left| wanted.min(left));
    let most = most
        .min(to_i128(next_wallet.total_available()))
        .min(headroom);
    let ahead = not_negative(most - to_i128(charge));
    let delta = next_wallet.debit(charge).map_err(broken)?;
    next_key.usage = add_amount(key.usage, charge).map_err(broken)?;
    next_wallet.freeze(ahead).map_err(broken)?;
    next_key.frozen = add_amount(next_key.frozen, ahead).map_err(broken)?;
    (*wallet, *key) = (next_wallet, next_key);
    Ok(BookedStep {
        charge,
        delta,
        hold: ahead,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admit::admit;
    use crate::close::settle;
    use crate::wallet::WalletStatus;

    const NOON: UnixMs = UnixMs::new(1_700_000_000_000);

    /// A wallet of 100 with a session that holds 30 of it.
    fn held() -> (Wallet, Key, Reservation) {
        let mut wallet = Wallet {
            balance: Micro::new(90),
            gift_balance: Micro::new(10),
            ..Wallet::default()
        };
        let mut key = Key {
            enabled: true,
            ..Key::default()
        };
        let held = Reservation {
            hold: Micro::new(30),
            exposure: Micro::ZERO,
            tokens: 0,
            counts_in_flight: true,
        };
        admit(&mut wallet, &mut key, &held, Micro::ZERO, NOON).unwrap();
        (wallet, key, held)
    }

    fn asked(used: i64, wanted: i64, least: i64) -> Step {
        Step {
            used: Micro::new(used),
            wanted: Micro::new(wanted),
            least: Micro::new(least),
        }
    }

    #[test]
    fn a_step_books_what_was_used_and_holds_what_is_wanted_or_affordable() {
        for (name, booked, limit, used, wanted, least, charge, hold) in [
            ("ahead", 0, None, 15, 45, 16, 15, 30),
            ("a second one", 10, None, 15, 45, 16, 5, 30),
            ("more than was held", 0, None, 60, 90, 60, 60, 30),
            ("what is affordable", 0, None, 80, 110, 81, 80, 20),
            ("exactly all", 0, None, 100, 130, 100, 100, 0),
            ("what the key may", 0, Some(40), 20, 50, 21, 20, 20),
            ("nothing is used twice", 20, None, 15, 45, 16, 0, 25),
            ("less than the hold has", 0, None, 5, 6, 6, 5, 1),
        ] {
            let (mut wallet, mut key, held) = held();
            key.limit = limit.map(Micro::new);
            let asked = asked(used, wanted, least);
            let booked = Micro::new(booked);
            let stepped = step(
                &mut wallet,
                &mut key,
                &held,
                booked,
                &asked,
                Micro::ZERO,
                NOON,
            )
            .unwrap();
            assert_eq!(stepped.charge, Micro::new(charge), "{name}");
            assert_eq!(stepped.hold, Micro::new(hold), "{name}");
            assert_eq!((wallet.frozen, key.frozen), (stepped.hold, stepped.hold));
            assert_eq!(key.usage, stepped.charge, "{name}");
            let spent = 100 - wallet.balance.get() - wallet.gift_balance.get();
            assert_eq!(spent, charge, "{name}");
            assert_eq!(key.open_holds, 1);
            // The remaining hold is closed like the hold of a call.
            let held = Reservation {
                hold: stepped.hold,
                ..held
            };
            settle(&mut wallet, &mut key, &held, Micro::ZERO, None, NOON).unwrap();
            assert_eq!((wallet.frozen, key.open_holds), (Micro::ZERO, 0), "{name}");
        }
    }

    #[test]
    fn a_step_leaves_room_for_what_other_calls_may_cost() {
        let (mut wallet, mut key, held) = held();
        wallet.exposed = Micro::new(75);
        let asked = asked(15, 45, 16);
        let (booked, limit) = (Micro::ZERO, Micro::new(5));
        let stepped = step(&mut wallet, &mut key, &held, booked, &asked, limit, NOON).unwrap();
        // 100 credits plus a debt limit of 5, minus 75 for other calls, leave 30: 15 are charged
        // and 15 are held.
        assert_eq!(stepped.charge, Micro::new(15));
        assert_eq!(stepped.hold, Micro::new(15));
        assert_eq!(wallet.headroom(limit), 0);
    }

    #[test]
    fn a_refused_step_changes_nothing() {
        type Set = fn(&mut Wallet, &mut Key);
        let nothing: Set = |_, _| {};
        let cases: [(Set, Step, Refusal); 8] = [
            (nothing, asked(90, 120, 101), Refusal::InsufficientQuota),
            (nothing, asked(101, 120, 0), Refusal::InsufficientQuota),
            (
                |wallet, _| wallet.frozen = Micro::new(29),
                asked(1, 2, 2),
                Refusal::InsufficientQuota,
            ),
            (
                |wallet, _| wallet.exposed = Micro::new(60),
                asked(40, 70, 41),
                Refusal::DebtLimitReached,
            ),
            (
                |_, key| key.limit = Some(Micro::new(40)),
                asked(40, 70, 41),
                Refusal::KeyLimitReached,
            ),
            (
                |_, key| key.enabled = false,
                asked(1, 2, 2),
                Refusal::KeyDisabled,
            ),
            (
                |_, key| key.expires_at = Some(NOON),
                asked(1, 2, 2),
                Refusal::KeyExpired,
            ),
            (
                |wallet, _| wallet.status = WalletStatus::Disabled,
                asked(1, 2, 2),
                Refusal::WalletDisabled,
            ),
        ];
        for (set, asked, refusal) in cases {
            let (mut wallet, mut key, held) = held();
            set(&mut wallet, &mut key);
            let before = (wallet, key);
            let refused = step(
                &mut wallet,
                &mut key,
                &held,
                Micro::ZERO,
                &asked,
                Micro::ZERO,
                NOON,
            );
            assert_eq!(refused, Err(refusal));
            assert_eq!((wallet, key), before, "{refusal}");
        }
    }
}
