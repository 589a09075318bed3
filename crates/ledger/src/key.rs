//! An API key: how much of a wallet it may spend, and how fast.

use crate::bucket::Bucket;
use crate::micro::Micro;
use crate::time::UnixMs;
use crate::wallet::{not_negative, to_i128};

/// An API key's limits and their use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Key {
    /// Whether the key admits requests.
    pub enabled: bool,
    /// When it expires.
    pub expires_at: Option<UnixMs>,
    /// The most that it may spend in total.
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
    /// What is left of the spending limit: `max(limit - usage, 0)`; `None` without a limit.
    pub fn limit_remaining(&self) -> Option<Micro> {
        self.limit
            .map(|limit| not_negative(to_i128(limit) - to_i128(self.usage)))
    }

    /// Whether the key has expired.
    pub fn is_expired(&self, now: UnixMs) -> bool {
        self.expires_at.is_some_and(|end| now >= end)
    }

    /// Whether `amount` more can be held under the spending limit.
    pub(crate) fn covers(&self, amount: Micro) -> bool {
        self.left().is_none_or(|left| left >= to_i128(amount))
    }

    /// What can still be held under the spending limit. It may be negative: an exceeded limit
    /// refuses even a call that costs nothing.
    pub(crate) fn left(&self) -> Option<i128> {
        let spent = to_i128(self.usage) + to_i128(self.frozen);
        self.limit.map(|limit| to_i128(limit) - spent)
    }
}
