//! Admission: one step that decides everything, and takes all or nothing.

use crate::bucket::{Rate, Wait};
use crate::key::Key;
use crate::micro::Micro;
use crate::time::UnixMs;
use crate::wallet::{Wallet, WalletStatus, raised};

/// What a request asks for, and what its hold then keeps until it is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// Credits to hold.
    pub hold: Micro,
    /// Tokens to take from the tokens-per-minute bucket.
    pub tokens: u64,
    /// Whether the hold counts as a request in flight; a task's does not.
    pub counts: bool,
}

/// Where the key's limits stand after an admission; none where none is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rates {
    /// Requests per minute.
    pub requests: Option<Rate>,
    /// Tokens per minute.
    pub tokens: Option<Rate>,
}

/// Why a request is not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The wallet is disabled.
    #[error("the wallet is disabled")]
    WalletDisabled,
    /// The key is disabled.
    #[error("the key is disabled")]
    KeyDisabled,
    /// The key's time is over.
    #[error("the key has expired")]
    KeyExpired,
    /// The wallet cannot cover the hold.
    #[error("the wallet does not cover the request")]
    InsufficientQuota,
    /// The key's spending limit cannot cover the hold.
    #[error("the key's spending limit does not cover the request")]
    KeyLimitReached,
    /// Too many requests per minute.
    #[error("too many requests per minute")]
    RequestRate {
        /// Milliseconds after which the request would pass.
        retry_after_ms: u64,
    },
    /// Too many tokens per minute.
    #[error("too many tokens per minute")]
    TokenRate {
        /// Milliseconds after which the request would pass; none when it is larger than the
        /// whole bucket and never will.
        retry_after_ms: Option<u64>,
    },
    /// Too many requests in flight.
    #[error("too many requests in flight")]
    Concurrency,
}

/// What to wait before asking again under a limit of zero requests.
const MINUTE_MS: u64 = 60_000;

impl Ask {
    /// The hold after it was extended by `more`.
    pub fn extended(&self, more: &Self) -> Option<Self> {
        Some(Self {
            hold: self.hold.checked_add(more.hold)?,
            tokens: self.tokens.saturating_add(more.tokens),
            counts: self.counts,
        })
    }
}

/// Admits a request: wallet, key, spending limit, rates and concurrency, decided together.
///
/// On a refusal nothing has changed. The rates in the answer are those after this request.
pub fn admit(wallet: &mut Wallet, key: &mut Key, ask: &Ask, now: UnixMs) -> Result<Rates, Refusal> {
    if !key.enabled {
        return Err(Refusal::KeyDisabled);
    }
    if key.is_expired(now) {
        return Err(Refusal::KeyExpired);
    }
    if wallet.status == WalletStatus::Disabled {
        return Err(Refusal::WalletDisabled);
    }
    let (next_wallet, mut next_key) = frozen(wallet, key, ask.hold)?;
    let mut rates = Rates::default();
    if let Some(limit) = key.rpm_limit {
        next_key
            .rpm
            .take(1, limit, now)
            .map_err(|wait| Refusal::RequestRate {
                retry_after_ms: match wait {
                    Wait::Ms(ms) => ms,
                    Wait::Never => MINUTE_MS,
                },
            })?;
        rates.requests = Some(next_key.rpm.rate(limit, now));
    }
    if let Some(limit) = key.tpm_limit {
        next_key
            .tpm
            .take(ask.tokens, limit, now)
            .map_err(|wait| Refusal::TokenRate {
                retry_after_ms: match wait {
                    Wait::Ms(ms) => Some(ms),
                    Wait::Never => None,
                },
            })?;
        rates.tokens = Some(next_key.tpm.rate(limit, now));
    }
    if ask.counts {
        let limit = key.concurrency_limit.unwrap_or(u32::MAX);
        if key.open_holds >= limit {
            return Err(Refusal::Concurrency);
        }
        next_key.open_holds += 1;
    }
    (*wallet, *key) = (next_wallet, next_key);
    Ok(rates)
}

/// Grows an open hold by `more`, if wallet and spending limit cover it.
///
/// Nothing else is asked: a disabled wallet or a dead key stops admission only, and output that
/// is already flowing takes its tokens from the bucket even if that leaves it in debt. On a
/// refusal nothing has changed.
pub fn extend(wallet: &mut Wallet, key: &mut Key, more: &Ask, now: UnixMs) -> Result<(), Refusal> {
    (*wallet, *key) = frozen(wallet, key, more.hold)?;
    if let Some(limit) = key.tpm_limit {
        key.tpm.force(more.tokens, limit, now);
    }
    Ok(())
}

/// Wallet and key with `hold` more credits frozen, if both cover it.
fn frozen(wallet: &Wallet, key: &Key, hold: Micro) -> Result<(Wallet, Key), Refusal> {
    let (mut wallet, mut key) = (*wallet, *key);
    if !wallet.covers(hold) {
        return Err(Refusal::InsufficientQuota);
    }
    if !key.covers(hold) {
        return Err(Refusal::KeyLimitReached);
    }
    // A hold below zero, which no estimate gives, ends here and not in someone's credits.
    wallet
        .freeze(hold)
        .map_err(|_| Refusal::InsufficientQuota)?;
    key.frozen = raised(key.frozen, hold).map_err(|_| Refusal::KeyLimitReached)?;
    Ok((wallet, key))
}
