//! The contract's Balance object.

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::key::Key;
use crate::micro::Micro;
use crate::wallet::{Wallet, WalletStatus};

/// What `GET /v1/balance` answers: a wallet and one of its keys at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Balance {
    wallet: Wallet,
    key: Key,
}

impl Balance {
    /// The view of a key and its wallet.
    pub const fn view(wallet: &Wallet, key: &Key) -> Self {
        Self {
            wallet: *wallet,
            key: *key,
        }
    }

    /// What the key can spend: nothing when the wallet is disabled, else what is left of the
    /// wallet and of the key's limit, whichever is less.
    pub fn available(&self) -> Micro {
        if self.wallet.status == WalletStatus::Disabled {
            return Micro::ZERO;
        }
        let wallet = self.wallet.total_available();
        self.key
            .limit_remaining()
            .map_or(wallet, |key| key.min(wallet))
    }
}

impl Serialize for Balance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(None)?;
        members.serialize_entry("object", "balance")?;
        amount(
            &mut members,
            ["available", "available_micro"],
            self.available(),
        )?;
        members.serialize_entry("key", &KeyView(&self.key))?;
        members.serialize_entry("wallet", &WalletView(&self.wallet))?;
        members.end()
    }
}

struct KeyView<'a>(&'a Key);

impl Serialize for KeyView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let key = self.0;
        let mut members = serializer.serialize_map(None)?;
        amount_or_null(&mut members, ["limit", "limit_micro"], key.limit)?;
        amount(&mut members, ["usage", "usage_micro"], key.usage)?;
        let remaining = ["limit_remaining", "limit_remaining_micro"];
        amount_or_null(&mut members, remaining, key.limit_remaining())?;
        members.serialize_entry("rpm_limit", &key.rpm_limit)?;
        members.serialize_entry("tpm_limit", &key.tpm_limit)?;
        members.serialize_entry("concurrency_limit", &key.concurrency_limit)?;
        members.serialize_entry("expires_at", &key.expires_at)?;
        members.end()
    }
}

struct WalletView<'a>(&'a Wallet);

impl Serialize for WalletView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let wallet = self.0;
        let mut members = serializer.serialize_map(None)?;
        members.serialize_entry("status", wallet.status.as_str())?;
        for (names, value) in [
            (["available", "available_micro"], wallet.available()),
            (
                ["total_available", "total_available_micro"],
                wallet.total_available(),
            ),
            (["balance", "balance_micro"], wallet.balance),
            (["gift_balance", "gift_balance_micro"], wallet.gift_balance),
            (["frozen", "frozen_micro"], wallet.frozen),
            (["credit_limit", "credit_limit_micro"], wallet.credit_limit),
            (["credit_used", "credit_used_micro"], wallet.credit_used),
            (
                ["credit_remaining", "credit_remaining_micro"],
                wallet.credit_remaining(),
            ),
        ] {
            amount(&mut members, names, value)?;
        }
        members.end()
    }
}

/// Every amount is told twice: in decimal credits and in whole micro-credits.
fn amount<M: SerializeMap>(
    members: &mut M,
    [credits, micro]: [&str; 2],
    value: Micro,
) -> Result<(), M::Error> {
    members.serialize_entry(credits, &Shown(value))?;
    members.serialize_entry(micro, &Shown(value.get()))
}

fn amount_or_null<M: SerializeMap>(
    members: &mut M,
    names: [&str; 2],
    value: Option<Micro>,
) -> Result<(), M::Error> {
    match value {
        Some(value) => amount(members, names, value),
        None => names
            .iter()
            .try_for_each(|name| members.serialize_entry(name, &())),
    }
}

struct Shown<T>(T);

impl<T: std::fmt::Display> Serialize for Shown<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}
