//! Looks up names of wallets and keys.

use std::sync::Arc;

use tokio_postgres::Client;

use crate::records::ids::{KeyId, WalletId};
use crate::records::names::{AccountNames, FoundAccounts, FoundKey};

type Read<T> = Result<T, tokio_postgres::Error>;

pub(crate) async fn names(
    on: Arc<Client>,
    wallets: Vec<WalletId>,
    keys: Vec<KeyId>,
) -> Read<AccountNames> {
    let mut names = AccountNames::default();
    let wallets: Vec<String> = wallets.iter().map(WalletId::to_string).collect();
    let keys: Vec<String> = keys.iter().map(KeyId::to_string).collect();
    let of_wallets = "SELECT id, name FROM wallets WHERE id = ANY($1)";
    let of_keys = "SELECT id, name FROM keys WHERE id = ANY($1) AND name IS NOT NULL";
    for row in on.query(of_wallets, &[&wallets]).await? {
        names.wallets.insert(row.try_get(0)?, row.try_get(1)?);
    }
    for row in on.query(of_keys, &[&keys]).await? {
        names.keys.insert(row.try_get(0)?, row.try_get(1)?);
    }
    Ok(names)
}

/// Finds accounts whose names contain a text, or whose ids begin with it.
pub(crate) async fn find(on: Arc<Client>, text: String, limit: u32) -> Read<FoundAccounts> {
    let text = text.replace('\0', "");
    let (lower, limit) = (text.to_lowercase(), i64::from(limit));
    let wallets =
        "SELECT id, name FROM wallets WHERE position($1 IN lower(name)) > 0 OR starts_with(id, $2)
                   ORDER BY n LIMIT $3";
    let keys = "SELECT k.id, w.id, k.name, k.shown_prefix FROM keys k JOIN wallets w ON w.n = k.wallet
                WHERE position($1 IN lower(k.name)) > 0 OR starts_with(k.id, $2)
                OR (length($2) >= length(k.shown_prefix) AND starts_with($2, k.shown_prefix)) ORDER BY k.n LIMIT $3";
    let mut found = FoundAccounts::default();
    for row in on.query(wallets, &[&lower, &text, &limit]).await? {
        found.wallets.push((row.try_get(0)?, row.try_get(1)?));
    }
    for row in on.query(keys, &[&lower, &text, &limit]).await? {
        found.keys.push(FoundKey {
            id: row.try_get(0)?,
            wallet: row.try_get(1)?,
            name: row.try_get(2)?,
            prefix: row.try_get(3)?,
        });
    }
    Ok(found)
}
