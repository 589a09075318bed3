//! An API key with its limits: how much of a wallet it may spend, and how fast.

use crate::bucket::Bucket;
use crate::micro::Micro;
use crate::time::UnixMs;
use crate::wallet::{not_negative, to_i128};
use crate::window::{Period, Window};

/// An API key: its limits, and how much of them is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Key {
    /// Whether the key admits requests.
    pub enabled: bool,
    /// The time at which the key expires.
    pub expires_at: Option<UnixMs>,
    /// The maximum that the key may spend in total.
    pub limit: Option<Micro>,
    /// The maximum that the key may spend in each calendar period.
    pub window: Option<Window>,
    /// The amount spent: the sum of the key's settled charges.
    pub usage: Micro,
    /// The sum of the key's open holds.
    pub frozen: Micro,
    /// The number of the key's open holds that count as requests in flight.
    pub open_holds: u32,
    /// The maximum number of requests per minute.
    pub rpm_limit: Option<u32>,
    /// The maximum number of tokens per minute.
    pub tpm_limit: Option<u32>,
    /// The maximum number of requests in flight.
    pub concurrency_limit: Option<u32>,
    /// The bucket of requests per minute.
    pub rpm: Bucket,
    /// The bucket of tokens per minute.
    pub tpm: Bucket,
}

impl Key {
    /// The amount left under the spending limits: `max(limit - usage, 0)`, or the amount left in the current period if
    /// that is less; `None` if there is no limit.
    pub fn limit_remaining(&self) -> Option<Micro> {
        self.unspent().map(not_negative)
    }

    /// The charges in the current period of the window.
    pub fn window_usage(&self) -> Micro {
        self.window
            .map_or(Micro::ZERO, |window| not_negative(window.spent(self.usage)))
    }

    /// Whether the key has expired.
    pub fn is_expired(&self, now: UnixMs) -> bool {
        self.expires_at.is_some_and(|end| now >= end)
    }

    /// Whether the window needs a new period, because its last one is over or it has had none.
    pub fn needs_period(&self, now: UnixMs) -> bool {
        self.window.is_some_and(|window| window.is_over(now))
    }

    /// Begins a new period of the window. Earlier charges belong to earlier periods. Open holds count against the new
    /// period, because they will be charged in it.
    pub fn begin_period(&mut self, period: Period) {
        if let Some(window) = &mut self.window {
            window.period = period;
            window.usage_before = self.usage;
        }
    }

    /// Whether `amount` more can be held under the spending limits.
    pub(crate) fn covers(&self, amount: Micro) -> bool {
        self.holdable().is_none_or(|left| left >= to_i128(amount))
    }

    /// The amount that can still be held under the spending limits. It may be negative: an exceeded limit refuses even
    /// a call that costs nothing.
    pub(crate) fn holdable(&self) -> Option<i128> {
        self.unspent().map(|left| left - to_i128(self.frozen))
    }

    /// The spending limits minus the charges so far.
    fn unspent(&self) -> Option<i128> {
        let total = self.limit.map(|limit| to_i128(limit) - to_i128(self.usage));
        let Some(window) = self.window else {
            return total;
        };
        let in_period = to_i128(window.amount) - window.spent(self.usage);
        Some(total.map_or(in_period, |total| total.min(in_period)))
    }
}
