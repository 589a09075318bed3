//! The view of a key for operators.

use ledger::{Micro, UnixMs};
use serde::Serialize;
use store::{Calendar, KeyId, KeyRow, ModelList, WalletId};
use utoipa::ToSchema;

/// A key with the members of `GET /v1/balance`, and members that only operators see. Amounts are decimal credits, and
/// again in whole micro-credits.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Key)]
pub(crate) struct KeyView {
    #[schema(value_type = String, example = "key_0123456789abcdef")]
    pub(crate) id: KeyId,
    #[schema(required)]
    pub(crate) name: Option<String>,
    #[schema(value_type = String, example = "wal_0123456789abcdef")]
    pub(crate) wallet: WalletId,
    pub(crate) wallet_name: String,
    /// The first characters of the secret.
    pub(crate) prefix: String,
    pub(crate) enabled: bool,
    /// The total amount that the key may spend.
    #[schema(required)]
    pub(crate) limit: Option<String>,
    #[schema(required)]
    pub(crate) limit_micro: Option<String>,
    pub(crate) usage: String,
    pub(crate) usage_micro: String,
    /// The remaining amount of the limit or of the window, whichever is less.
    #[schema(required)]
    pub(crate) limit_remaining: Option<String>,
    #[schema(required)]
    pub(crate) limit_remaining_micro: Option<String>,
    /// The amount that the key may spend in each calendar period.
    #[schema(required)]
    pub(crate) window: Option<WindowView>,
    #[schema(required, value_type = Option<i64>)]
    pub(crate) rpm_limit: Option<u32>,
    #[schema(required, value_type = Option<i64>)]
    pub(crate) tpm_limit: Option<u32>,
    #[schema(required, value_type = Option<i64>)]
    pub(crate) concurrency_limit: Option<u32>,
    #[schema(required, value_type = Option<i64>)]
    pub(crate) expires_at: Option<UnixMs>,
    /// The models that the key may call; empty if it may call all of them.
    pub(crate) models: Vec<String>,
    pub(crate) tags: Vec<String>,
    /// When the last call of the key was admitted.
    #[schema(required, value_type = Option<i64>)]
    pub(crate) last_used_at: Option<UnixMs>,
    /// When the secret before the last rotation stops working.
    #[schema(required, value_type = Option<i64>)]
    pub(crate) old_secret_until: Option<UnixMs>,
    #[schema(value_type = i64)]
    pub(crate) created_at: UnixMs,
}

/// A spending limit for each calendar period, and the current period.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Window)]
pub(crate) struct WindowView {
    pub(crate) amount: String,
    pub(crate) amount_micro: String,
    /// The amount charged in the current period.
    pub(crate) used: String,
    pub(crate) used_micro: String,
    /// `day`, `week` or `month`.
    #[schema(value_type = String, example = "day")]
    pub(crate) per: &'static str,
    pub(crate) time_zone: String,
    /// When the next period begins.
    #[schema(value_type = i64)]
    pub(crate) resets_at: UnixMs,
}

/// A key with its new secret, which is shown once.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = KeyWithSecret)]
pub(crate) struct NewKeyView {
    #[serde(flatten)]
    pub(crate) key: KeyView,
    pub(crate) secret: String,
}

impl From<&KeyRow> for KeyView {
    fn from(row: &KeyRow) -> Self {
        let key = &row.key;
        let remaining = key.limit_remaining();
        Self {
            id: row.id,
            name: row.name.clone(),
            wallet: row.wallet,
            wallet_name: row.wallet_name.clone(),
            prefix: row.shown_prefix.clone(),
            enabled: key.enabled,
            limit: key.limit.map(credits),
            limit_micro: key.limit.map(micro),
            usage: credits(key.usage),
            usage_micro: micro(key.usage),
            limit_remaining: remaining.map(credits),
            limit_remaining_micro: remaining.map(micro),
            window: row
                .calendar
                .as_ref()
                .and_then(|calendar| WindowView::of(key, calendar)),
            rpm_limit: key.rpm_limit,
            tpm_limit: key.tpm_limit,
            concurrency_limit: key.concurrency_limit,
            expires_at: key.expires_at,
            models: row.models.as_ref().map(patterns).unwrap_or_default(),
            tags: row.tags.clone(),
            last_used_at: row.last_used_at,
            old_secret_until: row.old_secret_until,
            created_at: row.created_at,
        }
    }
}

impl WindowView {
    fn of(key: &ledger::Key, calendar: &Calendar) -> Option<Self> {
        let window = key.window?;
        let used = key.window_usage();
        Some(Self {
            amount: credits(window.amount),
            amount_micro: micro(window.amount),
            used: credits(used),
            used_micro: micro(used),
            per: calendar.per().as_str(),
            time_zone: calendar.time_zone().to_owned(),
            resets_at: window.period.ends_at,
        })
    }
}

fn patterns(list: &ModelList) -> Vec<String> {
    list.patterns().map(ToOwned::to_owned).collect()
}

fn credits(amount: Micro) -> String {
    amount.to_string()
}

fn micro(amount: Micro) -> String {
    amount.get().to_string()
}

#[cfg(test)]
mod tests {
    use ledger::{Period, Window};
    use serde_json::json;
    use store::PeriodLength;

    use super::*;

    #[test]
    fn a_key_tells_its_limits_and_never_its_secret() {
        let row = KeyRow {
            id: KeyId::parse("key_0123456789abcdef").unwrap(),
            wallet: WalletId::parse("wal_0123456789abcdef").unwrap(),
            wallet_name: "acme".to_owned(),
            name: None,
            shown_prefix: "sk-tg-abcd".to_owned(),
            key: ledger::Key {
                enabled: true,
                limit: Some(Micro::new(10_000_000)),
                window: Some(Window {
                    amount: Micro::new(2_000_000),
                    usage_before: Micro::new(1_500_000),
                    period: Period {
                        ends_at: UnixMs::new(99),
                        entries_before: 3,
                    },
                }),
                usage: Micro::new(2_500_000),
                rpm_limit: Some(60),
                expires_at: Some(UnixMs::new(9)),
                ..ledger::Key::default()
            },
            calendar: Some(Calendar::new(PeriodLength::Day, "Europe/Berlin").unwrap()),
            models: ModelList::new(["sim/chat", "acme/*"]).unwrap(),
            tags: vec!["prod".to_owned()],
            last_used_at: Some(UnixMs::new(8)),
            old_secret_until: None,
            created_at: UnixMs::new(7),
        };
        let expected = json!({
            "id": "key_0123456789abcdef",
            "wallet": "wal_0123456789abcdef",
            "wallet_name": "acme",
            "name": null,
            "prefix": "sk-tg-abcd",
            "enabled": true,
            "limit": "10",
            "limit_micro": "10000000",
            "usage": "2.5",
            "usage_micro": "2500000",
            "limit_remaining": "1",
            "limit_remaining_micro": "1000000",
            "window": {
                "amount": "2",
                "amount_micro": "2000000",
                "used": "1",
                "used_micro": "1000000",
                "per": "day",
                "time_zone": "Europe/Berlin",
                "resets_at": 99,
            },
            "rpm_limit": 60,
            "tpm_limit": null,
            "concurrency_limit": null,
            "expires_at": 9,
            "models": ["sim/chat", "acme/*"],
            "tags": ["prod"],
            "last_used_at": 8,
            "old_secret_until": null,
            "created_at": 7,
        });
        assert_eq!(json!(KeyView::from(&row)), expected);
    }
}
