//! Shows wallets and keys as rows of tables.

use store::{KeyRow, WalletRow};

use crate::cli::terminal::{Side, Table, time};

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

/// The spent part of the spending window, such as `2.5 of 10/day`.
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

fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}
