//! Restores decisions that were lost before they were stored. Nothing is checked again, because the
//! callers have already been told that their calls were admitted.

use crate::admit::Reservation;
use crate::key::Key;
use crate::micro::{Micro, Overflow};
use crate::time::UnixMs;
use crate::wallet::{Wallet, add_amount};

/// Restores the reservation of an admitted call whose hold was lost. The call has been answered
/// and is about to be closed. An error changes nothing.
pub fn reopen(
    wallet: &mut Wallet,
    key: &mut Key,
    held: &Reservation,
    now: UnixMs,
) -> Result<(), Overflow> {
    let (mut next_wallet, mut next_key) = (*wallet, *key);
    next_wallet.freeze(held.hold)?;
    next_wallet.expose(held.exposure)?;
    next_key.frozen = add_amount(key.frozen, held.hold)?;
    if held.counts_in_flight {
        next_key.open_holds = key.open_holds.checked_add(1).ok_or(Overflow)?;
    }
    if let Some(limit) = key.rpm_limit {
        next_key.rpm.force(1, limit, now);
    }
    if let Some(limit) = key.tpm_limit {
        next_key.tpm.force(held.tokens, limit, now);
    }
    (*wallet, *key) = (next_wallet, next_key);
    Ok(())
}

/// Grows a hold to `amount` again, after an earlier growth was lost. An error changes nothing.
pub fn regrow(
    wallet: &mut Wallet,
    key: &mut Key,
    held: &Reservation,
    amount: Micro,
) -> Result<Reservation, Overflow> {
    let more = amount.checked_sub(held.hold).ok_or(Overflow)?;
    let mut next = *wallet;
    next.freeze(more)?;
    key.frozen = add_amount(key.frozen, more)?;
    *wallet = next;
    Ok(Reservation {
        hold: amount,
        ..*held
    })
}
