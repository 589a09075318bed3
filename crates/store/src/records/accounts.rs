//! Wallets and keys as operators create, change and list them.

use std::sync::Arc;

use ledger::{Micro, UnixMs, WalletStatus};

use super::calendar::Calendar;
use super::ids::{Digest, KeyId, WalletId};
use super::model_list::ModelList;

/// A new wallet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWallet {
    /// Unique among wallets.
    pub name: String,
    /// Initial paid credits, booked as a top-up.
    pub balance: Micro,
    /// Initial gift credits, booked as a gift.
    pub gift: Micro,
    /// The size of the credit line.
    pub credit_limit: Micro,
}

/// The current state of a wallet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalletRow {
    pub id: WalletId,
    pub name: String,
    pub wallet: ledger::Wallet,
    /// The balance below which an alert for this wallet begins.
    pub alert_below: Option<Micro>,
    pub created_at: UnixMs,
}

/// Wallets that owe more than their credit line.
#[derive(Debug, Clone, Default)]
pub struct WalletsBeyondCredit {
    /// The wallets with the largest debt, largest first.
    pub deepest: Vec<WalletRow>,
    /// The number of all such wallets.
    pub total: u64,
}

impl WalletRow {
    /// Whether this wallet may make calls.
    pub fn is_active(&self) -> bool {
        matches!(self.wallet.status, WalletStatus::Active)
    }
}

/// A new key. The store never sees the secret itself.
#[derive(Debug, Clone)]
pub struct NewKey {
    pub wallet: WalletId,
    pub name: Option<String>,
    pub digest: Digest,
    /// The first characters of the secret, so that people can tell keys apart.
    pub shown_prefix: String,
    pub limits: KeyLimits,
    /// Words by which people find the key.
    pub tags: Vec<String>,
}

/// Limits on the spending, rates and models of a key. `None` is unlimited.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyLimits {
    pub limit: Option<Micro>,
    pub window: Option<KeyWindow>,
    pub models: Option<ModelList>,
    pub rpm: Option<u32>,
    pub tpm: Option<u32>,
    pub concurrency: Option<u32>,
    pub expires_at: Option<UnixMs>,
}

/// The amount that a key may spend in each calendar period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyWindow {
    pub amount: Micro,
    pub calendar: Calendar,
}

/// A change of a key. The outer `None` keeps a value, the inner `None` removes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyChange {
    pub name: Option<Option<String>>,
    pub enabled: Option<bool>,
    pub limit: Option<Option<Micro>>,
    pub window: Option<Option<KeyWindow>>,
    pub models: Option<Option<ModelList>>,
    pub tags: Option<Vec<String>>,
    pub rpm: Option<Option<u32>>,
    pub tpm: Option<Option<u32>>,
    pub concurrency: Option<Option<u32>>,
    pub expires_at: Option<Option<UnixMs>>,
}

/// A new secret for a key. The store never sees the secret itself.
#[derive(Debug, Clone)]
pub struct KeyRotation {
    pub digest: Digest,
    /// The first characters of the new secret.
    pub shown_prefix: String,
    /// When the previous secret stops working. `None` ends it at once.
    pub old_secret_until: Option<UnixMs>,
}

/// The current state of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    pub id: KeyId,
    pub wallet: WalletId,
    pub wallet_name: String,
    pub name: Option<String>,
    pub shown_prefix: String,
    /// Limits, spending and rates.
    pub key: ledger::Key,
    /// The periods of the key's window.
    pub calendar: Option<Calendar>,
    pub models: Option<ModelList>,
    pub tags: Vec<String>,
    /// When the key's last call was admitted.
    pub last_used_at: Option<UnixMs>,
    /// When the secret from before the last rotation stops working.
    pub old_secret_until: Option<UnixMs>,
    pub created_at: UnixMs,
}

impl KeyRow {
    /// Brings the row up to `now`. Starts a new period if the last one is over, even if no call was made since. Leaves
    /// out the time at which a previous secret has stopped working.
    #[must_use]
    pub(crate) fn at(mut self, now: UnixMs) -> Self {
        if let Some(calendar) = &self.calendar
            && self.key.needs_period(now)
        {
            self.key.begin_period(ledger::Period {
                ends_at: calendar.period_end(now),
                entries_before: 0,
            });
        }
        self.old_secret_until = self.old_secret_until.filter(|until| *until > now);
        self
    }

    /// The part of the key that authentication needs.
    pub fn head(&self) -> KeyHead {
        KeyHead {
            key: self.id,
            wallet: self.wallet,
            enabled: self.key.enabled,
            expires_at: self.key.expires_at,
            rpm_limit: self.key.rpm_limit,
            models: self.models.clone().map(Arc::new),
        }
    }
}

/// The part of a key that authentication needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyHead {
    pub key: KeyId,
    pub wallet: WalletId,
    pub enabled: bool,
    /// When the key expires or, if this is earlier, when its secret from before a rotation stops working.
    pub expires_at: Option<UnixMs>,
    /// Requests per minute, for limits that the ledger does not enforce.
    pub rpm_limit: Option<u32>,
    /// The models that the key may call. `None` allows all of them.
    pub models: Option<Arc<ModelList>>,
}

impl KeyHead {
    /// Whether the key may call a model.
    pub fn allows(&self, model: &str) -> bool {
        self.models.as_ref().is_none_or(|list| list.allows(model))
    }
}

/// The earlier of two optional times. `None` is later than every time.
pub(crate) fn earlier(one: Option<UnixMs>, other: Option<UnixMs>) -> Option<UnixMs> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
