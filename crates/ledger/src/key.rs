//! The key: who may spend of a wallet, how much and how fast.

use crate::bucket::Bucket;
use crate::micro::Micro;
use crate::time::UnixMs;
use crate::wallet::{shown, wide};

/// An API key's limits and how far they are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Key {
    /// Whether the key admits requests.
    pub enabled: bool,
    /// From when on it does not.
    pub expires_at: Option<UnixMs>,
    /// What it may spend in all.
    pub limit: Option<Micro>,
    /// What it has spent: the sum of its settled charges.
    pub usage: Micro,
    /// What its open holds reserve.
    pub frozen: Micro,
    /// Its open holds that count as requests in flight.
    pub open_holds: u32,
    /// Requests per minute.
    pub rpm_limit: Option<u32>,
    /// Tokens per minute.
    pub tpm_limit: Option<u32>,
    /// Requests in flight.
    pub concurrency_limit: Option<u32>,
    /// Requests of the last minute.
    pub rpm: Bucket,
    /// Tokens of the last minute.
    pub tpm: Bucket,
}

impl Key {
    /// What is left of the spending limit: `max(limit - usage, 0)`; none when unlimited.
    pub fn limit_remaining(&self) -> Option<Micro> {
        self.limit
            .map(|limit| shown(wide(limit) - wide(self.usage)))
    }

    /// Whether the key's time is over.
    pub fn is_expired(&self, now: UnixMs) -> bool {
        self.expires_at.is_some_and(|end| now >= end)
    }

    /// Whether `amount` more can be held under the spending limit.
    pub(crate) fn covers(&self, amount: Micro) -> bool {
        self.left().is_none_or(|left| left >= wide(amount))
    }

    /// What can still be held under the spending limit. Not cut off at zero: a limit that was
    /// overdrawn refuses even what costs nothing.
    pub(crate) fn left(&self) -> Option<i128> {
        let spent = wide(self.usage) + wide(self.frozen);
        self.limit.map(|limit| wide(limit) - spent)
    }
}
