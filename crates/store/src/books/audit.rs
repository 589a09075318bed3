//! Composes the audit rows of changes to wallets and keys: small JSON documents without secrets or digests.

use ledger::{ManualKind, Micro, UnixMs, Wallet};
use serde_json::{Map, Value, json};

use crate::queue::command::{KeyEdit, WalletChange};
use crate::records::accounts::{KeyRow, WalletRow};
use crate::records::catalog::AuditAction;

/// An audit row that does not yet have a time and an actor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewAuditRow {
    pub(crate) action: &'static str,
    pub(crate) target: String,
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
}

impl From<AuditAction> for NewAuditRow {
    fn from(action: AuditAction) -> Self {
        Self {
            action: action.action,
            target: action.target,
            before: action.before,
            after: action.after,
        }
    }
}

impl NewAuditRow {
    pub(crate) fn created(action: &'static str, target: String, after: &Value) -> Self {
        Self {
            action,
            target,
            before: None,
            after: Some(after.to_string()),
        }
    }

    /// The audit row of a change. Members that are the same before and after are left out.
    pub(crate) fn changed(
        action: &'static str,
        target: String,
        before: Value,
        after: Value,
    ) -> Self {
        let (before, after) = differences(before, after);
        Self {
            action,
            target,
            before: Some(before.to_string()),
            after: Some(after.to_string()),
        }
    }

    pub(crate) fn wallet_created(row: &WalletRow) -> Self {
        let after = named_members(row);
        Self::created("wallet.create", row.id.to_string(), &after)
    }

    /// The audit row of a wallet change. The kind of change determines the name of the action.
    pub(crate) fn wallet_changed(
        before: &WalletRow,
        after: &WalletRow,
        change: &WalletChange,
    ) -> Self {
        let target = after.id.to_string();
        let (before, mut after) = (named_members(before), named_members(after));
        let action = match change {
            WalletChange::Manual(new) => {
                after["amount"] = json!(new.amount.to_string());
                for (name, text) in [
                    ("reference", new.reference.as_deref()),
                    ("refund_of", new.refund_of.as_deref()),
                    ("note", Some(&*new.note)),
                ] {
                    if let Some(text) = text.filter(|text| !text.is_empty()) {
                        after[name] = json!(text);
                    }
                }
                match new.kind {
                    ManualKind::TopUp => "wallet.top_up",
                    ManualKind::Gift => "wallet.gift",
                    ManualKind::Debit => "wallet.debit",
                    ManualKind::Refund => "wallet.refund",
                    ManualKind::Adjustment => "wallet.adjustment",
                }
            }
            WalletChange::Settings(_) => "wallet.update",
        };
        Self::changed(action, target, before, after)
    }

    pub(crate) fn key_created(row: &KeyRow) -> Self {
        let mut after = key_members(row);
        after["wallet"] = json!(row.wallet.to_string());
        Self::created("key.create", row.id.to_string(), &after)
    }

    pub(crate) fn key_changed(before: &KeyRow, after: &KeyRow, edit: &KeyEdit) -> Self {
        let target = after.id.to_string();
        let action = match edit {
            KeyEdit::Rotate(_) => "key.rotate",
            KeyEdit::Limits(_) | KeyEdit::Enabled(_) => "key.update",
        };
        Self::changed(action, target, key_members(before), key_members(after))
    }
}

fn differences(before: Value, after: Value) -> (Value, Value) {
    let (Value::Object(mut before), Value::Object(mut after)) = (before, after) else {
        return (Value::Null, Value::Null);
    };
    let same: Vec<String> = before
        .iter()
        .filter(|(name, value)| after.get(*name) == Some(value))
        .map(|(name, _)| name.clone())
        .collect();
    for name in same {
        before.remove(&name);
        after.remove(&name);
    }
    (Value::Object(before), Value::Object(after))
}

/// The settings of a wallet and its name. The amount for alerts is left out if it is not set.
fn named_members(row: &WalletRow) -> Value {
    let mut members = wallet_members(&row.wallet);
    members["name"] = json!(row.name);
    if let Some(below) = row.alert_below {
        members["alert_below"] = text(below);
    }
    members
}

/// The settings of a wallet, and the amounts that a top-up changes, in credits.
fn wallet_members(wallet: &Wallet) -> Value {
    json!({
        "enabled": wallet.status == ledger::WalletStatus::Active,
        "balance": wallet.balance.to_string(),
        "gift_balance": wallet.gift_balance.to_string(),
        "credit_limit": wallet.credit_limit.to_string(),
        "credit_used": wallet.credit_used.to_string(),
    })
}

/// The settings of a key. Limits that are not set are left out.
fn key_members(row: &KeyRow) -> Value {
    let mut members = Map::new();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            members.insert(name.to_owned(), value);
        }
    };
    let key = &row.key;
    set("name", row.name.clone().map(Value::from));
    set("enabled", Some(key.enabled.into()));
    set("prefix", Some(row.shown_prefix.clone().into()));
    set("limit", key.limit.map(text));
    let window = key.window.zip(row.calendar.as_ref());
    set(
        "window",
        window.map(|(window, calendar)| {
            let (per, zone) = (calendar.per().as_str(), calendar.time_zone());
            json!({"amount": window.amount.to_string(), "per": per, "time_zone": zone})
        }),
    );
    let models = row.models.as_ref();
    set(
        "models",
        models.map(|models| models.patterns().collect::<Vec<_>>().into()),
    );
    set(
        "tags",
        (!row.tags.is_empty()).then(|| row.tags.clone().into()),
    );
    set(
        "old_secret_until",
        row.old_secret_until.map(UnixMs::get).map(Value::from),
    );
    set("rpm", key.rpm_limit.map(Value::from));
    set("tpm", key.tpm_limit.map(Value::from));
    set("concurrency", key.concurrency_limit.map(Value::from));
    set(
        "expires_at",
        key.expires_at.map(UnixMs::get).map(Value::from),
    );
    Value::Object(members)
}

fn text(amount: Micro) -> Value {
    amount.to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::ids::WalletId;
    use crate::records::manual::NewEntry;

    #[test]
    fn only_members_that_differ_are_told() {
        let before = json!({"a": 1, "b": 2, "gone": 3});
        let after = json!({"a": 1, "b": 4, "new": 5});
        let audited = NewAuditRow::changed("x.y", "t".to_owned(), before, after);
        assert_eq!(audited.before.as_deref(), Some(r#"{"b":2,"gone":3}"#));
        assert_eq!(audited.after.as_deref(), Some(r#"{"b":4,"new":5}"#));
    }

    #[test]
    fn a_top_up_tells_its_amount_and_what_it_moved() {
        let before = WalletRow {
            id: WalletId::random(),
            name: "acme".to_owned(),
            wallet: Wallet::default(),
            alert_below: None,
            created_at: UnixMs::new(0),
        };
        let mut after = before.clone();
        after.wallet.top_up(Micro::new(2_500_000)).unwrap();
        let change = WalletChange::Manual(NewEntry {
            kind: ManualKind::TopUp,
            amount: Micro::new(2_500_000),
            reference: Some("pay_7".to_owned()),
            refund_of: None,
            note: "invoice 7".to_owned(),
        });
        let audited = NewAuditRow::wallet_changed(&before, &after, &change);
        assert_eq!(audited.action, "wallet.top_up");
        assert_eq!(audited.before.as_deref(), Some(r#"{"balance":"0"}"#));
        assert_eq!(
            audited.after.as_deref(),
            Some(r#"{"amount":"2.5","balance":"2.5","note":"invoice 7","reference":"pay_7"}"#)
        );
    }
}
