//! Looks up names of wallets and keys.

use rusqlite::{Connection, params};

use crate::records::ids::{KeyId, WalletId};
use crate::records::names::{AccountNames, FoundAccounts, FoundKey};

pub(crate) fn names(
    on: &Connection,
    wallets: &[WalletId],
    keys: &[KeyId],
) -> rusqlite::Result<AccountNames> {
    let mut names = AccountNames::default();
    let mut select = on.prepare_cached("SELECT name FROM wallets WHERE id = ?1")?;
    for wallet in wallets {
        let mut rows = select.query([wallet])?;
        if let Some(row) = rows.next()? {
            names.wallets.insert(*wallet, row.get(0)?);
        }
    }
    let mut select =
        on.prepare_cached("SELECT name FROM keys WHERE id = ?1 AND name IS NOT NULL")?;
    for key in keys {
        let mut rows = select.query([key])?;
        if let Some(row) = rows.next()? {
            names.keys.insert(*key, row.get(0)?);
        }
    }
    Ok(names)
}

/// Finds accounts whose names contain a text or whose ids begin with it. A text that begins with the shown prefix of a
/// key also finds that key.
pub(crate) fn find(on: &Connection, text: &str, limit: u32) -> rusqlite::Result<FoundAccounts> {
    let lower = text.to_lowercase();
    let mut wallets = on.prepare_cached(
        "SELECT id, name FROM wallets WHERE instr(lower(name), ?1) > 0 OR instr(id, ?2) = 1 ORDER BY n LIMIT ?3",
    )?;
    let wallets = wallets.query_map(params![lower, text, limit], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    let mut keys = on.prepare_cached(
        "SELECT k.id, w.id, k.name, k.shown_prefix FROM keys k JOIN wallets w ON w.n = k.wallet
         WHERE instr(lower(k.name), ?1) > 0 OR instr(k.id, ?2) = 1
         OR (length(?2) >= length(k.shown_prefix) AND instr(?2, k.shown_prefix) = 1) ORDER BY k.n LIMIT ?3",
    )?;
    let keys = keys.query_map(params![lower, text, limit], |row| {
        Ok(FoundKey {
            id: row.get(0)?,
            wallet: row.get(1)?,
            name: row.get(2)?,
            prefix: row.get(3)?,
        })
    })?;
    Ok(FoundAccounts {
        wallets: wallets.collect::<rusqlite::Result<_>>()?,
        keys: keys.collect::<rusqlite::Result<_>>()?,
    })
}
