//! The ends of a hold. They read no status: what was admitted closes as usual.

use crate::admit::Ask;
use crate::key::Key;
use crate::micro::{Micro, Overflow};
use crate::time::UnixMs;
use crate::wallet::{Delta, Wallet, lowered, raised};

/// Ends a hold with a charge, which may be above it: what was delivered is booked in full.
///
/// `tokens` are those really used, when known; the tokens-per-minute bucket is corrected to them.
/// On an error nothing has changed.
pub fn settle(
    wallet: &mut Wallet,
    key: &mut Key,
    held: &Ask,
    charge: Micro,
    tokens: Option<u64>,
    now: UnixMs,
) -> Result<Delta, Overflow> {
    let (mut next_wallet, mut next_key) = thawed(wallet, key, held)?;
    let delta = next_wallet.debit(charge)?;
    next_key.usage = raised(key.usage, charge)?;
    if let (Some(limit), Some(tokens)) = (key.tpm_limit, tokens) {
        next_key.tpm.correct(held.tokens, tokens, limit, now);
    }
    (*wallet, *key) = (next_wallet, next_key);
    Ok(delta)
}

/// Ends a hold without a charge: credits, tokens and the place in flight go back. The request
/// itself stays counted, since it was made.
pub fn release(
    wallet: &mut Wallet,
    key: &mut Key,
    held: &Ask,
    now: UnixMs,
) -> Result<(), Overflow> {
    (*wallet, *key) = thawed(wallet, key, held)?;
    if let Some(limit) = key.tpm_limit {
        key.tpm.give_back(held.tokens, limit, now);
    }
    Ok(())
}

/// Stops counting an open hold as a request in flight: its caller has gone, and it only drains.
pub fn stop_counting(key: &mut Key, held: &mut Ask) -> Result<(), Overflow> {
    if held.counts {
        key.open_holds = key.open_holds.checked_sub(1).ok_or(Overflow)?;
        held.counts = false;
    }
    Ok(())
}

/// Wallet and key without what the hold reserved.
fn thawed(wallet: &Wallet, key: &Key, held: &Ask) -> Result<(Wallet, Key), Overflow> {
    let (mut wallet, mut key) = (*wallet, *key);
    wallet.unfreeze(held.hold)?;
    key.frozen = lowered(key.frozen, held.hold)?;
    if held.counts {
        key.open_holds = key.open_holds.checked_sub(1).ok_or(Overflow)?;
    }
    Ok((wallet, key))
}
