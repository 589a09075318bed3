//! Wallets and keys, for administration.

use ledger::{Micro, UnixMs, WalletStatus};

use super::ids::{Digest, KeyId, WalletId};

/// A new wallet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWallet {
    /// Unique among wallets.
    pub name: String,
    /// Initial paid credits, booked as a top-up.
    pub balance: Micro,
    /// Initial gift credits, booked as a gift.
    pub gift: Micro,
    /// How far the credit line goes.
    pub credit_limit: Micro,
}

/// The current state of a wallet.
#[derive(Debug, Clone)]
pub struct WalletRow {
    pub id: WalletId,
    pub name: String,
    pub wallet: ledger::Wallet,
    pub created_at: UnixMs,
}

impl WalletRow {
    /// Whether calls of this wallet are admitted at all.
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
}

/// What a key may spend and how fast. `None` is unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeyLimits {
    pub limit: Option<Micro>,
    pub rpm: Option<u32>,
    pub tpm: Option<u32>,
    pub concurrency: Option<u32>,
    pub expires_at: Option<UnixMs>,
}

/// A change of a key. The outer `None` keeps a value, the inner `None` removes the limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyChange {
    pub name: Option<Option<String>>,
    pub limit: Option<Option<Micro>>,
    pub rpm: Option<Option<u32>>,
    pub tpm: Option<Option<u32>>,
    pub concurrency: Option<Option<u32>>,
    pub expires_at: Option<Option<UnixMs>>,
}

/// The current state of a key.
#[derive(Debug, Clone)]
pub struct KeyRow {
    pub id: KeyId,
    pub wallet: WalletId,
    pub name: Option<String>,
    pub shown_prefix: String,
    /// Limits, spending and rates.
    pub key: ledger::Key,
    pub created_at: UnixMs,
}

/// What authentication needs of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyHead {
    pub key: KeyId,
    pub wallet: WalletId,
    pub enabled: bool,
    pub expires_at: Option<UnixMs>,
    /// Requests per minute, for limits that do not involve the ledger.
    pub rpm_limit: Option<u32>,
}
