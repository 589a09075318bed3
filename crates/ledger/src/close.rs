//! Closes holds. Every hold can be closed, even if its key or wallet has been disabled since.

use crate::admit::Reservation;
use crate::key::Key;
use crate::micro::{Micro, Overflow};
use crate::time::UnixMs;
use crate::wallet::{Delta, Wallet, add_amount, subtract_amount};

/// Closes a hold with a charge. The charge may exceed the hold, because delivered output is booked
/// in full.
///
/// `tokens` is the actual usage, if known. It replaces the estimate in the tokens-per-minute bucket. An error changes
/// nothing.
pub fn settle(
    wallet: &mut Wallet,
    key: &mut Key,
    held: &Reservation,
    charge: Micro,
    tokens: Option<u64>,
    now: UnixMs,
) -> Result<Delta, Overflow> {
    let (mut next_wallet, mut next_key) = without_reservation(wallet, key, held)?;
    let delta = next_wallet.debit(charge)?;
    next_key.usage = add_amount(key.usage, charge)?;
    if let (Some(limit), Some(tokens)) = (key.tpm_limit, tokens) {
        next_key.tpm.correct(held.tokens, tokens, limit, now);
    }
    (*wallet, *key) = (next_wallet, next_key);
    Ok(delta)
}

/// Closes a hold without a charge: its credits and tokens are returned, and it no longer counts as
/// a request in flight. The call still counts against the requests per minute.
pub fn release(
    wallet: &mut Wallet,
    key: &mut Key,
    held: &Reservation,
    now: UnixMs,
) -> Result<(), Overflow> {
    (*wallet, *key) = without_reservation(wallet, key, held)?;
    if let Some(limit) = key.tpm_limit {
        key.tpm.give_back(held.tokens, limit, now);
    }
    Ok(())
}

/// Stops counting an open hold as a request in flight. This is for calls whose client has gone and
/// whose upstream is still being read.
pub fn stop_counting(key: &mut Key, held: &mut Reservation) -> Result<(), Overflow> {
    if held.counts_in_flight {
        key.open_holds = key.open_holds.checked_sub(1).ok_or(Overflow)?;
        held.counts_in_flight = false;
    }
    Ok(())
}

/// Copies of the wallet and the key without the reservation of the hold.
fn without_reservation(
    wallet: &Wallet,
    key: &Key,
    held: &Reservation,
) -> Result<(Wallet, Key), Overflow> {
    let (mut wallet, mut key) = (*wallet, *key);
    wallet.unfreeze(held.hold)?;
    wallet.unexpose(held.exposure)?;
    key.frozen = subtract_amount(key.frozen, held.hold)?;
    if held.counts_in_flight {
        key.open_holds = key.open_holds.checked_sub(1).ok_or(Overflow)?;
    }
    Ok((wallet, key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admit::admit;
    use crate::restore::{regrow, reopen};
    use crate::wallet::WalletStatus;

    const NOON: UnixMs = UnixMs::new(1_700_000_000_000);

    /// A wallet of 100 with a hold of 60 credits and 500 tokens, and an exposure of 40.
    fn held() -> (Wallet, Key, Reservation) {
        let mut wallet = Wallet {
            balance: Micro::new(100),
            ..Wallet::default()
        };
        let mut key = Key {
            enabled: true,
            rpm_limit: Some(10),
            tpm_limit: Some(1_000),
            ..Key::default()
        };
        let held = Reservation {
            hold: Micro::new(60),
            exposure: Micro::new(40),
            tokens: 500,
            counts_in_flight: true,
        };
        admit(&mut wallet, &mut key, &held, Micro::ZERO, NOON).unwrap();
        (wallet, key, held)
    }

    #[test]
    fn a_settlement_ends_the_hold_and_books_the_charge() {
        // Charges below the hold, above the hold, and above everything that the wallet has.
        for (charge, balance, credit_used) in [(0, 100, 0), (25, 75, 0), (90, 10, 0), (130, 0, 30)]
        {
            let (mut wallet, mut key, held) = held();
            let charge = Micro::new(charge);
            let delta = settle(&mut wallet, &mut key, &held, charge, None, NOON).unwrap();
            assert_eq!((wallet.frozen, key.frozen), (Micro::ZERO, Micro::ZERO));
            assert_eq!(wallet.exposed, Micro::ZERO);
            assert_eq!(
                (wallet.balance, wallet.credit_used),
                (Micro::new(balance), Micro::new(credit_used))
            );
            assert_eq!(
                (delta.balance, delta.credit_used),
                (balance - 100, credit_used)
            );
            assert_eq!((key.usage, key.open_holds), (charge, 0));
        }
    }

    #[test]
    fn a_hold_that_is_reopened_is_the_hold_that_was_admitted() {
        let (wallet, key, held) = held();
        let (mut again_wallet, mut again_key) = (wallet, key);
        release(&mut again_wallet, &mut again_key, &held, NOON).unwrap();
        again_key.rpm = Key::default().rpm;
        reopen(&mut again_wallet, &mut again_key, &held, NOON).unwrap();
        assert_eq!((again_wallet, again_key), (wallet, key));
        // Neither an empty wallet nor a disabled key prevents the charge.
        let (mut empty, mut dead) = (Wallet::default(), Key::default());
        reopen(&mut empty, &mut dead, &held, NOON).unwrap();
        settle(&mut empty, &mut dead, &held, Micro::new(7), None, NOON).unwrap();
        assert_eq!(
            (empty.credit_used, dead.usage),
            (Micro::new(7), Micro::new(7))
        );
        assert_eq!((empty.frozen, dead.open_holds), (Micro::ZERO, 0));
    }

    #[test]
    fn a_hold_that_grows_again_asks_for_nothing() {
        let (mut wallet, mut key, held) = held();
        // The new amount is more than the wallet has.
        let grown = regrow(&mut wallet, &mut key, &held, Micro::new(500)).unwrap();
        assert_eq!((wallet.frozen, key.frozen), (grown.hold, grown.hold));
        assert_eq!(
            (grown.hold, grown.exposure),
            (Micro::new(500), held.exposure)
        );
        settle(&mut wallet, &mut key, &grown, Micro::new(90), None, NOON).unwrap();
        assert_eq!((wallet.frozen, key.frozen), (Micro::ZERO, Micro::ZERO));
    }

    #[test]
    fn a_hold_that_cannot_grow_again_is_unchanged() {
        let (mut wallet, mut key, held) = held();
        key.frozen = Micro::MAX;
        let before = (wallet, key);
        for hold in [59, 61, i64::MAX] {
            let grown = regrow(&mut wallet, &mut key, &held, Micro::new(hold));
            assert_eq!(grown, Err(Overflow), "{hold}");
            assert_eq!((wallet, key), before, "{hold}");
        }
    }

    #[test]
    fn tokens_are_corrected_to_those_used() {
        for (tokens, remaining) in [
            (None, 500),
            (Some(500), 500),
            (Some(100), 900),
            (Some(800), 200),
            (Some(9_000), 0),
        ] {
            let (mut wallet, mut key, held) = held();
            settle(&mut wallet, &mut key, &held, Micro::ZERO, tokens, NOON).unwrap();
            assert_eq!(key.tpm.rate(1_000, NOON).remaining, remaining, "{tokens:?}");
        }
    }

    #[test]
    fn a_release_returns_everything_except_the_request() {
        let (mut wallet, mut key, held) = held();
        release(&mut wallet, &mut key, &held, NOON).unwrap();
        assert_eq!((wallet.frozen, key.frozen), (Micro::ZERO, Micro::ZERO));
        assert_eq!(wallet.exposed, Micro::ZERO);
        assert_eq!((wallet.balance, key.usage), (Micro::new(100), Micro::ZERO));
        assert_eq!(key.open_holds, 0);
        assert_eq!(key.tpm.rate(1_000, NOON).remaining, 1_000);
        assert_eq!(key.rpm.rate(10, NOON).remaining, 9);
    }

    /// W11: an admitted call settles even if its key or wallet was disabled.
    #[test]
    fn an_admitted_call_settles_whatever_happened_to_wallet_and_key() {
        let (mut wallet, mut key, held) = held();
        wallet.status = WalletStatus::Disabled;
        key = Key {
            enabled: false,
            expires_at: Some(NOON),
            limit: Some(Micro::ZERO),
            rpm_limit: Some(0),
            tpm_limit: Some(0),
            concurrency_limit: Some(0),
            ..key
        };
        settle(&mut wallet, &mut key, &held, Micro::new(70), Some(10), NOON).unwrap();
        assert_eq!(
            (wallet.balance, key.usage),
            (Micro::new(30), Micro::new(70))
        );
    }

    #[test]
    fn a_caller_that_is_gone_is_not_in_flight() {
        let (mut wallet, mut key, mut held) = held();
        stop_counting(&mut key, &mut held).unwrap();
        assert_eq!(key.open_holds, 0);
        // A second `stop_counting` changes nothing, and closing the hold does not subtract it
        // again.
        stop_counting(&mut key, &mut held).unwrap();
        release(&mut wallet, &mut key, &held, NOON).unwrap();
        assert_eq!(key.open_holds, 0);
    }

    #[test]
    fn an_end_that_does_not_fit_the_books_changes_nothing() {
        type Break = fn(&mut Wallet, &mut Key);
        let breaks: [Break; 4] = [
            |wallet, _| wallet.frozen = Micro::new(59),
            |wallet, _| wallet.exposed = Micro::new(39),
            |_, key| key.frozen = Micro::new(59),
            |_, key| key.open_holds = 0,
        ];
        for break_books in breaks {
            let (mut wallet, mut key, held) = held();
            break_books(&mut wallet, &mut key);
            let before = (wallet, key);
            assert_eq!(release(&mut wallet, &mut key, &held, NOON), Err(Overflow));
            let settled = settle(&mut wallet, &mut key, &held, Micro::ZERO, Some(1), NOON);
            assert_eq!(settled, Err(Overflow));
            assert_eq!((wallet, key), before);
        }
        let (mut wallet, mut key, held) = held();
        key.usage = Micro::new(i64::MAX);
        let before = (wallet, key);
        for charge in [1, -1, i64::MAX] {
            let settled = settle(
                &mut wallet,
                &mut key,
                &held,
                Micro::new(charge),
                Some(1),
                NOON,
            );
            assert_eq!(settled, Err(Overflow));
            assert_eq!((wallet, key), before);
        }
    }
}
