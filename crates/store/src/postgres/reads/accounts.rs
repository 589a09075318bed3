//! Reads wallets and keys.

use std::sync::Arc;

use tokio_postgres::Client;
use tokio_postgres::types::Type;

use crate::postgres::rows::{KEY, WALLET, key_row, model_list, small, time_or_null, wallet_row};
use crate::records::accounts::{KeyHead, KeyRow, WalletRow, WalletsBeyondCredit, earlier};
use crate::records::ids::{Digest, KeyId, WalletId};

type Read<T> = Result<T, tokio_postgres::Error>;

/// Finds a key by its secret, or by the secret before the last rotation, which expires separately.
pub(crate) async fn key_by_digest(on: Arc<Client>, digest: Digest) -> Read<Option<KeyHead>> {
    let select =
        "SELECT k.id, w.id, k.enabled, k.expires_at, k.rpm_limit, k.models,
                  CASE WHEN k.digest = $1 THEN NULL ELSE k.old_secret_until END
                  FROM keys k JOIN wallets w ON w.n = k.wallet WHERE k.digest = $1 OR k.old_digest = $1";
    // The type of the parameter is given, so that the query takes one round trip without a prepared statement.
    let bytes = digest.as_bytes().as_slice();
    let found = on.query_typed(select, &[(&bytes, Type::BYTEA)]).await?;
    found
        .first()
        .map(|row| {
            Ok(KeyHead {
                key: row.try_get(0)?,
                wallet: row.try_get(1)?,
                enabled: row.try_get(2)?,
                expires_at: earlier(time_or_null(row, 3)?, time_or_null(row, 6)?),
                rpm_limit: row.try_get::<_, Option<i64>>(4)?.map(small),
                models: model_list(row, 5)?.map(Arc::new),
            })
        })
        .transpose()
}

pub(crate) async fn wallets(on: Arc<Client>) -> Read<Vec<WalletRow>> {
    let select = format!("SELECT {WALLET} FROM wallets w ORDER BY w.n");
    on.query(&select, &[])
        .await?
        .iter()
        .map(wallet_row)
        .collect()
}

/// Reads the wallets that owe more than their credit line, the largest debt first, and their total number.
pub(crate) async fn wallets_beyond_credit(
    on: Arc<Client>,
    limit: u32,
) -> Read<WalletsBeyondCredit> {
    let select = format!(
        "SELECT {WALLET}, count(*) OVER () AS total FROM wallets w WHERE w.credit_used > w.credit_limit
         ORDER BY w.credit_used - w.credit_limit DESC, w.n LIMIT $1"
    );
    let mut found = WalletsBeyondCredit::default();
    for row in &on.query(&select, &[&i64::from(limit)]).await? {
        found.total = u64::try_from(row.try_get::<_, i64>("total")?).unwrap_or(0);
        found.deepest.push(wallet_row(row)?);
    }
    Ok(found)
}

/// Finds a wallet by id, or else by name. Names never look like ids.
pub(crate) async fn find_wallet(on: Arc<Client>, name_or_id: String) -> Read<Option<WalletRow>> {
    let select = format!("SELECT {WALLET} FROM wallets w WHERE w.id = $1 OR w.name = $1");
    let found = on.query_opt(&select, &[&name_or_id]).await?;
    found.as_ref().map(wallet_row).transpose()
}

pub(crate) async fn keys(on: Arc<Client>, wallet: Option<WalletId>) -> Read<Vec<KeyRow>> {
    let wallet = wallet.map(|wallet| wallet.to_string());
    let select = format!(
        "SELECT {KEY} FROM keys k JOIN wallets w ON w.n = k.wallet WHERE $1::text IS NULL OR w.id = $1 ORDER BY k.n"
    );
    on.query(&select, &[&wallet])
        .await?
        .iter()
        .map(key_row)
        .collect()
}

pub(crate) async fn find_key(on: Arc<Client>, key: KeyId) -> Read<Option<KeyRow>> {
    let select =
        format!("SELECT {KEY} FROM keys k JOIN wallets w ON w.n = k.wallet WHERE k.id = $1");
    let found = on.query_opt(&select, &[&key.to_string()]).await?;
    found.as_ref().map(key_row).transpose()
}
