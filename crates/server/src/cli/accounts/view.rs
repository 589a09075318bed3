//! Wallets and keys as JSON, with every amount in credits and in micro-credits like `GET /v1/balance`,
//! and as rows of tables.

use ledger::Balance;
use serde_json::{Map, Value, json};
use store::{KeyRow, WalletRow};

use crate::cli::terminal::{Side, Table, time};

/// A wallet with the members of `GET /v1/balance`, and the exposure of its open calls.
pub(crate) fn wallet_json(row: &WalletRow) -> Value {
    let mut members = Map::new();
    members.insert("id".to_owned(), json!(row.id));
    members.insert("name".to_owned(), json!(row.name));
    members.extend(part(&row.wallet, &ledger::Key::default(), "wallet"));
    let exposed = row.wallet.exposed;
    members.insert("exposed".to_owned(), json!(exposed.to_string()));
    members.insert("exposed_micro".to_owned(), json!(exposed.get().to_string()));
    members.insert("created_at".to_owned(), json!(row.created_at));
    Value::Object(members)
}

/// A key with the members of `GET /v1/balance`.
pub(crate) fn key_json(row: &KeyRow) -> Value {
    let mut members = Map::new();
    members.insert("id".to_owned(), json!(row.id));
    members.insert("name".to_owned(), json!(row.name));
    members.insert("wallet".to_owned(), json!(row.wallet));
    members.insert("prefix".to_owned(), json!(row.shown_prefix));
    members.insert("enabled".to_owned(), json!(row.key.enabled));
    members.extend(part(&ledger::Wallet::default(), &row.key, "key"));
    members.insert("created_at".to_owned(), json!(row.created_at));
    Value::Object(members)
}

pub(crate) fn wallet_table<'a>(rows: impl IntoIterator<Item = &'a WalletRow>) -> Table {
    let mut table = Table::new([
        ("ID", Side::Left),
        ("NAME", Side::Left),
        ("STATUS", Side::Left),
        ("BALANCE", Side::Right),
        ("GIFT", Side::Right),
        ("FROZEN", Side::Right),
        ("EXPOSED", Side::Right),
        ("CREDIT USED", Side::Right),
        ("CREDIT LIMIT", Side::Right),
        ("AVAILABLE", Side::Right),
        ("CREATED", Side::Left),
    ]);
    for row in rows {
        let wallet = &row.wallet;
        table.row([
            row.id.to_string(),
            row.name.clone(),
            wallet.status.as_str().to_owned(),
            wallet.balance.to_string(),
            wallet.gift_balance.to_string(),
            wallet.frozen.to_string(),
            wallet.exposed.to_string(),
            wallet.credit_used.to_string(),
            wallet.credit_limit.to_string(),
            wallet.total_available().to_string(),
            time::show(row.created_at),
        ]);
    }
    table
}

pub(crate) fn key_table<'a>(rows: impl IntoIterator<Item = &'a KeyRow>) -> Table {
    let mut table = Table::new([
        ("ID", Side::Left),
        ("NAME", Side::Left),
        ("KEY", Side::Left),
        ("WALLET", Side::Left),
        ("STATUS", Side::Left),
        ("USAGE", Side::Right),
        ("LIMIT", Side::Right),
        ("RPM", Side::Right),
        ("TPM", Side::Right),
        ("CONCURRENCY", Side::Right),
        ("EXPIRES", Side::Left),
    ]);
    let now = time::now();
    for row in rows {
        let key = &row.key;
        let status = match (key.enabled, key.is_expired(now)) {
            (false, _) => "disabled",
            (true, true) => "expired",
            (true, false) => "active",
        };
        table.row([
            row.id.to_string(),
            row.name.clone().unwrap_or_else(|| "-".to_owned()),
            format!("{}…", row.shown_prefix),
            row.wallet.to_string(),
            status.to_owned(),
            key.usage.to_string(),
            or_dash(key.limit),
            or_dash(key.rpm_limit),
            or_dash(key.tpm_limit),
            or_dash(key.concurrency_limit),
            key.expires_at.map_or_else(|| "-".to_owned(), time::show),
        ]);
    }
    table
}

/// The wallet's or the key's part of `GET /v1/balance`.
fn part(wallet: &ledger::Wallet, key: &ledger::Key, name: &str) -> Map<String, Value> {
    let mut balance = json!(Balance::view(wallet, key));
    match balance.get_mut(name).map(Value::take) {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use ledger::{Micro, UnixMs};
    use store::{KeyId, WalletId};

    use super::*;

    #[test]
    fn a_wallet_tells_every_amount_twice() {
        let row = WalletRow {
            id: WalletId::parse("wal_0123456789abcdef").unwrap(),
            name: "acme".to_owned(),
            wallet: ledger::Wallet {
                balance: Micro::new(100_000_000),
                gift_balance: Micro::new(5_250_000),
                credit_limit: Micro::new(50_000_000),
                frozen: Micro::new(1),
                exposed: Micro::new(2),
                ..ledger::Wallet::default()
            },
            created_at: UnixMs::new(7),
        };
        let value = wallet_json(&row);
        let expected = json!({
            "id": "wal_0123456789abcdef",
            "name": "acme",
            "status": "active",
            "available": "105.249999",
            "available_micro": "105249999",
            "total_available": "155.249999",
            "total_available_micro": "155249999",
            "balance": "100",
            "balance_micro": "100000000",
            "gift_balance": "5.25",
            "gift_balance_micro": "5250000",
            "frozen": "0.000001",
            "frozen_micro": "1",
            "credit_limit": "50",
            "credit_limit_micro": "50000000",
            "credit_used": "0",
            "credit_used_micro": "0",
            "credit_remaining": "50",
            "credit_remaining_micro": "50000000",
            "exposed": "0.000002",
            "exposed_micro": "2",
            "created_at": 7,
        });
        assert_eq!(value, expected);
    }

    #[test]
    fn a_key_tells_its_limits_and_never_its_secret() {
        let row = KeyRow {
            id: KeyId::parse("key_0123456789abcdef").unwrap(),
            wallet: WalletId::parse("wal_0123456789abcdef").unwrap(),
            name: None,
            shown_prefix: "sk-tg-abcd".to_owned(),
            key: ledger::Key {
                enabled: true,
                limit: Some(Micro::new(10_000_000)),
                usage: Micro::new(2_500_000),
                rpm_limit: Some(60),
                expires_at: Some(UnixMs::new(9)),
                ..ledger::Key::default()
            },
            created_at: UnixMs::new(7),
        };
        let value = key_json(&row);
        let expected = json!({
            "id": "key_0123456789abcdef",
            "wallet": "wal_0123456789abcdef",
            "name": null,
            "prefix": "sk-tg-abcd",
            "enabled": true,
            "limit": "10",
            "limit_micro": "10000000",
            "usage": "2.5",
            "usage_micro": "2500000",
            "limit_remaining": "7.5",
            "limit_remaining_micro": "7500000",
            "rpm_limit": 60,
            "tpm_limit": null,
            "concurrency_limit": null,
            "expires_at": 9,
            "created_at": 7,
        });
        assert_eq!(value, expected);
    }
}
