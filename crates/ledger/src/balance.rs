//! The Balance object of the API contract.

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::key::Key;
use crate::micro::Micro;
use crate::wallet::{Wallet, WalletStatus};

/// The answer of `GET /v1/balance`: a wallet and one of its keys at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Balance {
    wallet: Wallet,
    key: Key,
}

impl Balance {
    /// Copies a wallet and one of its keys.
    pub const fn view(wallet: &Wallet, key: &Key) -> Self {
        Self {
            wallet: *wallet,
            key: *key,
        }
    }

    /// The amount that the key can spend: what is left of the wallet or of the key's limit, whichever is less. A
    /// disabled wallet has nothing to spend.
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
        members.serialize_entry("key", &KeyBalance(&self.key))?;
        members.serialize_entry("wallet", &WalletBalance(&self.wallet))?;
        members.end()
    }
}

struct KeyBalance<'a>(&'a Key);

impl Serialize for KeyBalance<'_> {
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

struct WalletBalance<'a>(&'a Wallet);

impl Serialize for WalletBalance<'_> {
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

/// Writes an amount twice: in decimal credits and in whole micro-credits.
fn amount<M: SerializeMap>(
    members: &mut M,
    [credits, micro]: [&str; 2],
    value: Micro,
) -> Result<(), M::Error> {
    members.serialize_entry(credits, &AsText(value))?;
    members.serialize_entry(micro, &AsText(value.get()))
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

struct AsText<T>(T);

impl<T: std::fmt::Display> Serialize for AsText<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::time::UnixMs;

    fn wallet() -> Wallet {
        Wallet {
            balance: Micro::new(12_500_000),
            gift_balance: Micro::new(250_000),
            frozen: Micro::new(1_000_001),
            credit_limit: Micro::new(50_000_000),
            ..Wallet::default()
        }
    }

    #[test]
    fn the_view_is_the_contracts_object() {
        let key = Key {
            enabled: true,
            limit: Some(Micro::new(10_000_000)),
            usage: Micro::new(1_234_567),
            rpm_limit: Some(60),
            tpm_limit: Some(100_000),
            concurrency_limit: Some(4),
            expires_at: Some(UnixMs::new(1_767_225_600_000)),
            ..Key::default()
        };
        let shown = serde_json::to_string(&Balance::view(&wallet(), &key)).unwrap();
        assert_eq!(
            shown,
            concat!(
                r#"{"object":"balance","available":"8.765433","available_micro":"8765433","#,
                r#""key":{"limit":"10","limit_micro":"10000000","#,
                r#""usage":"1.234567","usage_micro":"1234567","#,
                r#""limit_remaining":"8.765433","limit_remaining_micro":"8765433","#,
                r#""rpm_limit":60,"tpm_limit":100000,"concurrency_limit":4,"#,
                r#""expires_at":1767225600000},"#,
                r#""wallet":{"status":"active","available":"11.749999","available_micro":"11749999","#,
                r#""total_available":"61.749999","total_available_micro":"61749999","#,
                r#""balance":"12.5","balance_micro":"12500000","#,
                r#""gift_balance":"0.25","gift_balance_micro":"250000","#,
                r#""frozen":"1.000001","frozen_micro":"1000001","#,
                r#""credit_limit":"50","credit_limit_micro":"50000000","#,
                r#""credit_used":"0","credit_used_micro":"0","#,
                r#""credit_remaining":"50","credit_remaining_micro":"50000000"}}"#,
            )
        );
    }

    #[test]
    fn limits_that_are_not_set_are_null() {
        let view = serde_json::to_value(Balance::view(&wallet(), &Key::default())).unwrap();
        let key = json!({
            "limit": null, "limit_micro": null,
            "usage": "0", "usage_micro": "0",
            "limit_remaining": null, "limit_remaining_micro": null,
            "rpm_limit": null, "tpm_limit": null, "concurrency_limit": null,
            "expires_at": null,
        });
        assert_eq!(view["key"], key);
        assert_eq!(view["available"], "61.749999");
    }

    #[test]
    fn a_spent_limit_leaves_nothing_available() {
        for usage in [10_000_000, 10_000_001] {
            let key = Key {
                limit: Some(Micro::new(10_000_000)),
                usage: Micro::new(usage),
                ..Key::default()
            };
            let view = serde_json::to_value(Balance::view(&wallet(), &key)).unwrap();
            assert_eq!(view["key"]["limit_remaining"], "0");
            assert_eq!(view["available"], "0");
            assert_eq!(view["available_micro"], "0");
        }
    }

    #[test]
    fn the_keys_own_holds_do_not_lower_its_limit_remaining() {
        let key = Key {
            limit: Some(Micro::new(10_000_000)),
            frozen: Micro::new(1_000_001),
            ..Key::default()
        };
        let view = serde_json::to_value(Balance::view(&wallet(), &key)).unwrap();
        assert_eq!(view["key"]["limit_remaining"], "10");
    }

    #[test]
    fn a_disabled_wallet_has_nothing_available_to_the_key() {
        let wallet = Wallet {
            status: WalletStatus::Disabled,
            ..wallet()
        };
        let view = serde_json::to_value(Balance::view(&wallet, &Key::default())).unwrap();
        assert_eq!(view["available"], "0");
        assert_eq!(view["wallet"]["status"], "disabled");
        assert_eq!(view["wallet"]["total_available"], "61.749999");
    }
}
