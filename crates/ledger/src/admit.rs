//! Admission: decides whether a call may start. It checks all limits in one step and reserves everything or nothing.

use crate::bucket::{Rate, Wait};
use crate::key::Key;
use crate::micro::{Micro, Overflow};
use crate::rate_clock::AdmitTime;
use crate::time::UnixMs;
use crate::wallet::{Wallet, WalletStatus, add_amount, subtract_amount, to_i128};

/// What a call reserves. The hold keeps this reservation until it is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reservation {
    /// Credits to hold.
    pub hold: Micro,
    /// The maximum that the call may cost beyond its hold.
    pub exposure: Micro,
    /// Tokens to take from the tokens-per-minute bucket.
    pub tokens: u64,
    /// Whether the hold counts as a request in flight. The hold of a task does not.
    pub counts_in_flight: bool,
}

impl Reservation {
    /// The smallest reservation that covers `self` as well as `other`: the larger hold, and the larger worst case (hold
    /// plus exposure).
    #[must_use]
    pub fn covering_both(&self, other: &Self) -> Self {
        let hold = self.hold.max(other.hold);
        let worst = |it: &Self| it.hold.checked_add(it.exposure).unwrap_or(Micro::MAX);
        let worst = worst(self).max(worst(other));
        Self {
            hold,
            exposure: worst.checked_sub(hold).unwrap_or_default(),
            tokens: self.tokens.max(other.tokens),
            counts_in_flight: self.counts_in_flight || other.counts_in_flight,
        }
    }
}

/// The state of a key's limits per minute. A member is `None` if the key has no such limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rates {
    /// Requests per minute.
    pub requests: Option<Rate>,
    /// Tokens per minute.
    pub tokens: Option<Rate>,
}

/// The reason why a request is not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The wallet is disabled.
    #[error("the wallet is disabled")]
    WalletDisabled,
    /// The key is disabled.
    #[error("the key is disabled")]
    KeyDisabled,
    /// The key has expired.
    #[error("the key has expired")]
    KeyExpired,
    /// The wallet cannot cover the hold.
    #[error("the wallet does not cover the request")]
    InsufficientQuota,
    /// The wallet covers the hold, but not the maximum that this call and the open calls may cost together.
    #[error(
        "the wallet covers the request's estimate, but not what the open requests may cost at most"
    )]
    DebtLimitReached,
    /// The key's spending limit cannot cover the hold.
    #[error("the key's spending limit does not cover the request")]
    KeyLimitReached,
    /// Too many requests per minute.
    #[error("too many requests per minute")]
    RequestRate {
        /// Milliseconds after which the request would be admitted.
        retry_after_ms: u64,
    },
    /// Too many tokens per minute.
    #[error("too many tokens per minute")]
    TokenRate {
        /// Milliseconds after which the request would be admitted; `None` if it exceeds the whole
        /// bucket.
        retry_after_ms: Option<u64>,
    },
    /// Too many requests in flight.
    #[error("too many requests in flight")]
    Concurrency,
}

/// The wait that is reported for a limit of zero requests per minute, which never admits.
const ZERO_LIMIT_WAIT_MS: u64 = 60_000;

impl Reservation {
    const NOTHING: Self = Self {
        hold: Micro::ZERO,
        exposure: Micro::ZERO,
        tokens: 0,
        counts_in_flight: false,
    };

    fn worst_case(&self) -> i128 {
        to_i128(self.hold) + to_i128(self.exposure)
    }

    /// The reservation extended by `more`. The exposure shrinks by the amount that is added to the hold.
    pub fn extended(&self, more: &Self) -> Option<Self> {
        let exposed = self.exposure.checked_add(more.exposure)?;
        Some(Self {
            hold: self.hold.checked_add(more.hold)?,
            exposure: subtract_amount(exposed, more.hold).unwrap_or(Micro::ZERO),
            tokens: self.tokens.saturating_add(more.tokens),
            counts_in_flight: self.counts_in_flight,
        })
    }
}

impl Rates {
    /// The current rates of a key.
    pub fn of(key: &Key, now: UnixMs) -> Self {
        Self {
            requests: key.rpm_limit.map(|limit| key.rpm.rate(limit, now)),
            tokens: key.tpm_limit.map(|limit| key.tpm.rate(limit, now)),
        }
    }
}

/// Admits a request if the wallet, the key, its spending limit, its rates and its concurrency all allow it.
///
/// Even if every open call costs its maximum, the wallet falls at most `debt_limit` below its credit line. A refusal
/// changes nothing. The returned rates include this request.
pub fn admit(
    wallet: &mut Wallet,
    key: &mut Key,
    reservation: &Reservation,
    debt_limit: Micro,
    now: impl Into<AdmitTime>,
) -> Result<Rates, Refusal> {
    let AdmitTime { wall, rates: now } = now.into();
    check_usable(wallet, key, wall)?;
    let (next_wallet, mut next_key) =
        with_reservation(wallet, key, &Reservation::NOTHING, reservation, debt_limit)?;
    if let Some(limit) = key.rpm_limit {
        next_key
            .rpm
            .take(1, limit, now)
            .map_err(|wait| Refusal::RequestRate {
                retry_after_ms: match wait {
                    Wait::Ms(ms) => ms,
                    Wait::Never => ZERO_LIMIT_WAIT_MS,
                },
            })?;
    }
    if let Some(limit) = key.tpm_limit {
        next_key
            .tpm
            .take(reservation.tokens, limit, now)
            .map_err(|wait| Refusal::TokenRate {
                retry_after_ms: match wait {
                    Wait::Ms(ms) => Some(ms),
                    Wait::Never => None,
                },
            })?;
    }
    if reservation.counts_in_flight {
        let limit = key.concurrency_limit.unwrap_or(u32::MAX);
        if key.open_holds >= limit {
            return Err(Refusal::Concurrency);
        }
        next_key.open_holds += 1;
    }
    (*wallet, *key) = (next_wallet, next_key);
    Ok(Rates::of(key, now))
}

/// Refuses disabled and expired keys, and disabled wallets.
pub(crate) fn check_usable(wallet: &Wallet, key: &Key, now: UnixMs) -> Result<(), Refusal> {
    if !key.enabled {
        return Err(Refusal::KeyDisabled);
    }
    if key.is_expired(now) {
        return Err(Refusal::KeyExpired);
    }
    if wallet.status == WalletStatus::Disabled {
        return Err(Refusal::WalletDisabled);
    }
    Ok(())
}

/// Grows an open hold by `more` if the wallet, the debt limit and the spending limit cover it. Returns the new
/// reservation. A refusal changes nothing.
///
/// Nothing else is checked, because a disabled wallet or key stops only admission. The tokens are taken even if the
/// bucket has too few, because the upstream is already generating the output.
pub fn extend(
    wallet: &mut Wallet,
    key: &mut Key,
    held: &Reservation,
    more: &Reservation,
    debt_limit: Micro,
    now: UnixMs,
) -> Result<Reservation, Refusal> {
    let grown = held.extended(more).ok_or(Refusal::InsufficientQuota)?;
    (*wallet, *key) = with_reservation(wallet, key, held, &grown, debt_limit)?;
    if let Some(limit) = key.tpm_limit {
        key.tpm.force(more.tokens, limit, now);
    }
    Ok(grown)
}

/// Copies of the wallet and the key with `after` reserved instead of `before`, if both cover it.
fn with_reservation(
    wallet: &Wallet,
    key: &Key,
    before: &Reservation,
    after: &Reservation,
    debt_limit: Micro,
) -> Result<(Wallet, Key), Refusal> {
    let (mut wallet, mut key) = (*wallet, *key);
    // Refuse a negative hold, which would add credits. Estimates never produce one.
    let hold = subtract_amount(after.hold, before.hold).map_err(|_| Refusal::InsufficientQuota)?;
    if !wallet.covers(hold) {
        return Err(Refusal::InsufficientQuota);
    }
    if !key.covers(hold) {
        return Err(Refusal::KeyLimitReached);
    }
    let more = after.worst_case() - before.worst_case();
    if more > 0 && more > wallet.headroom(debt_limit) {
        return Err(Refusal::DebtLimitReached);
    }
    let broken = |_: Overflow| Refusal::InsufficientQuota;
    wallet.freeze(hold).map_err(broken)?;
    wallet.unexpose(before.exposure).map_err(broken)?;
    wallet.expose(after.exposure).map_err(broken)?;
    key.frozen = add_amount(key.frozen, hold).map_err(|_| Refusal::KeyLimitReached)?;
    Ok((wallet, key))
}

#[cfg(test)]
mod tests;
