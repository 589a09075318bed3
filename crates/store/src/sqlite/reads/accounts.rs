//! Reads wallets and keys, on the read pool.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _};

use crate::records::accounts::{KeyHead, KeyRow, WalletRow, WalletsBeyondCredit, earlier};
use crate::records::ids::{Digest, KeyId, WalletId};
use crate::sqlite::rows::{FROM_KEYS, KEY, WALLET, key_row, model_list, time_or_null, wallet_row};

/// Finds a key by its secret, or by the secret before the last rotation, which expires separately.
const KEY_BY_DIGEST: &str = "SELECT k.id, w.id, k.enabled, k.expires_at, k.rpm_limit, k.models,
     CASE WHEN k.digest = ?1 THEN NULL ELSE k.old_secret_until END
     FROM keys k JOIN wallets w ON w.n = k.wallet WHERE k.digest = ?1 OR k.old_digest = ?1";

pub(crate) fn key_by_digest(on: &Connection, digest: &Digest) -> rusqlite::Result<Option<KeyHead>> {
    let head = |row: &rusqlite::Row<'_>| {
        Ok(KeyHead {
            key: row.get(0)?,
            wallet: row.get(1)?,
            enabled: row.get(2)?,
            expires_at: earlier(time_or_null(row, 3)?, time_or_null(row, 6)?),
            rpm_limit: row.get(4)?,
            models: model_list(row, 5)?.map(Arc::new),
        })
    };
    on.prepare_cached(KEY_BY_DIGEST)?
        .query_row([digest.as_bytes()], head)
        .optional()
}

pub(crate) fn wallets(on: &Connection) -> rusqlite::Result<Vec<WalletRow>> {
    let mut select = on.prepare_cached(&format!("SELECT {WALLET} FROM wallets w ORDER BY w.n"))?;
    select.query_map([], wallet_row)?.collect()
}

/// Reads the wallets that owe more than their credit line, the largest debt first, and their total number.
pub(crate) fn wallets_beyond_credit(
    on: &Connection,
    limit: u32,
) -> rusqlite::Result<WalletsBeyondCredit> {
    let select = format!(
        "SELECT {WALLET}, count(*) OVER () AS total FROM wallets w WHERE w.credit_used > w.credit_limit
         ORDER BY w.credit_used - w.credit_limit DESC, w.n LIMIT ?1"
    );
    let mut select = on.prepare_cached(&select)?;
    let mut rows = select.query([limit])?;
    let mut found = WalletsBeyondCredit::default();
    while let Some(row) = rows.next()? {
        found.total = u64::try_from(row.get::<_, i64>("total")?).unwrap_or(0);
        found.deepest.push(wallet_row(row)?);
    }
    Ok(found)
}

/// Finds a wallet by id, or else by name. Names never look like ids.
pub(crate) fn find_wallet(
    on: &Connection,
    name_or_id: &str,
) -> rusqlite::Result<Option<WalletRow>> {
    let select = format!("SELECT {WALLET} FROM wallets w WHERE w.id = ?1 OR w.name = ?1");
    on.prepare_cached(&select)?
        .query_row([name_or_id], wallet_row)
        .optional()
}

pub(crate) fn keys(on: &Connection, wallet: Option<WalletId>) -> rusqlite::Result<Vec<KeyRow>> {
    let all = format!("SELECT {KEY} {FROM_KEYS}");
    if let Some(wallet) = wallet {
        let mut select = on.prepare_cached(&format!("{all} WHERE w.id = ?1 ORDER BY k.n"))?;
        select.query_map([wallet], key_row)?.collect()
    } else {
        let mut select = on.prepare_cached(&format!("{all} ORDER BY k.n"))?;
        select.query_map([], key_row)?.collect()
    }
}

pub(crate) fn find_key(on: &Connection, key: KeyId) -> rusqlite::Result<Option<KeyRow>> {
    let select = format!("SELECT {KEY} {FROM_KEYS} WHERE k.id = ?1");
    on.prepare_cached(&select)?
        .query_row([key], key_row)
        .optional()
}

#[cfg(test)]
mod tests {
    use rusqlite::{OpenFlags, StatementStatus};

    use super::*;
    use crate::sqlite::connection::connect;
    use crate::sqlite::schema::migrations::Schema;

    /// Planning the statement for every value would cost thirty times as much as the lookup itself.
    #[test]
    fn a_lookup_is_planned_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tollgate.db");
        let mut on = connect::open(&path, OpenFlags::SQLITE_OPEN_CREATE).unwrap();
        Schema::Ledger.migrate(&mut on, &path).unwrap();
        for secret in ["one", "two", "three"] {
            assert_eq!(
                key_by_digest(&on, &Digest::of(secret.as_bytes())).unwrap(),
                None
            );
        }
        let select = on.prepare_cached(KEY_BY_DIGEST).unwrap();
        assert_eq!(select.get_status(StatementStatus::Run), 3);
        assert_eq!(select.get_status(StatementStatus::RePrepare), 0);
    }
}
