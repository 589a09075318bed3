//! Wallets as JSON, with every amount in credits and in micro-credits like `GET /v1/balance`, and wallets and
//! keys as rows of tables.

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
        ("WINDOW", Side::Right),
        ("RPM", Side::Right),
        ("TPM", Side::Right),
        ("CONCURRENCY", Side::Right),
        ("EXPIRES", Side::Left),
        ("LAST USED", Side::Left),
        ("MODELS", Side::Left),
        ("TAGS", Side::Left),
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
            window(row),
            or_dash(key.rpm_limit),
            or_dash(key.tpm_limit),
            or_dash(key.concurrency_limit),
            or_dash(key.expires_at.map(time::show)),
            or_dash(row.last_used_at.map(time::show)),
            or_dash(row.models.as_ref().map(|list| joined(list.patterns()))),
            joined(row.tags.iter().map(String::as_str)),
        ]);
    }
    table
}

/// What was spent of the window, such as `2.5 of 10/day`.
fn window(row: &KeyRow) -> String {
    let both = row.key.window.zip(row.calendar.as_ref());
    or_dash(both.map(|(window, calendar)| {
        let (used, per) = (row.key.window_usage(), calendar.per());
        format!("{used} of {}/{per}", window.amount)
    }))
}

fn joined<'a>(items: impl Iterator<Item = &'a str>) -> String {
    let items: Vec<&str> = items.collect();
    if items.is_empty() {
        "-".to_owned()
    } else {
        items.join(", ")
    }
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
    use store::WalletId;

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
}
