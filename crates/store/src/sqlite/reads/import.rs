//! Finds out which parts of an import already exist in the ledger.

use ledger::Micro;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::records::import::{ImportKnown, ImportQuery};

pub(crate) fn known(on: &Connection, query: &ImportQuery) -> rusqlite::Result<ImportKnown> {
    let mut known = ImportKnown::default();
    let mut wallet = on.prepare_cached(
        "SELECT (SELECT balance_delta + gift_delta - credit_delta FROM entries WHERE wallet = w.n AND reference = ?2)
         FROM wallets w WHERE w.id = ?1",
    )?;
    for (id, reference) in &query.wallets {
        let found = wallet.query_row(params![id, reference], |row| row.get::<_, Option<i64>>(0));
        if let Some(booked) = found.optional()? {
            known.wallets.insert(*id, booked.map(Micro::new));
        }
    }
    let mut by_name = on.prepare_cached("SELECT id FROM wallets WHERE name = ?1")?;
    for name in &query.names {
        if let Some(id) = by_name.query_row([name], |row| row.get(0)).optional()? {
            known.names.insert(name.clone(), id);
        }
    }
    let mut key = on.prepare_cached("SELECT 1 FROM keys WHERE id = ?1")?;
    for id in &query.keys {
        if key.exists([id])? {
            known.keys.insert(*id);
        }
    }
    let mut by_digest =
        on.prepare_cached("SELECT id FROM keys WHERE digest = ?1 OR old_digest = ?1")?;
    for digest in &query.digests {
        let found = by_digest.query_row([digest.as_bytes()], |row| row.get(0));
        if let Some(id) = found.optional()? {
            known.digests.insert(*digest, id);
        }
    }
    Ok(known)
}
