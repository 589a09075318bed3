//! Computes the heads of wallets with entries from before chains existed. This happens once, after the migration.

use rusqlite::{Connection, OptionalExtension as _, params};

use crate::chain::Chains;
use crate::records::ids::PriceVersion;
use crate::sqlite::connection::connect::begin_write;
use crate::sqlite::reads::verify::each;
use crate::sqlite::rows::{ENTRY, entry_columns};

/// Whether a migration has left heads to be computed.
pub(crate) fn are_missing(on: &Connection) -> rusqlite::Result<bool> {
    let table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'heads_missing'";
    Ok(on.query_row(table, [], |_| Ok(())).optional()?.is_some())
}

/// Computes the head of every wallet from its entries, in one transaction. If the process is killed, the next start
/// repeats it.
pub(crate) fn fill(on: &Connection) -> rusqlite::Result<()> {
    let transaction = begin_write(on)?;
    if !are_missing(&transaction)? {
        return Ok(());
    }
    let mut chains = Chains::default();
    each(&transaction, "SELECT n, id FROM wallets", |row| {
        chains.wallet(row.get(0)?, row.get(1)?);
        Ok(())
    })?;
    each(&transaction, "SELECT n, id FROM keys", |row| {
        chains.key(row.get(0)?, row.get(1)?);
        Ok(())
    })?;
    let prices = "SELECT id, model, card FROM price_versions";
    each(&transaction, prices, |row| {
        let (model, card) = (row.get_ref(1)?.as_str()?, row.get_ref(2)?.as_str()?);
        chains.price_version(PriceVersion::new(row.get(0)?, model, card));
        Ok(())
    })?;
    // Ordered by row number, which is the order of posting within a wallet and the order in the file.
    let entries = format!("SELECT {ENTRY} FROM entries ORDER BY n");
    let mut count: u64 = 0;
    each(&transaction, &entries, |row| {
        chains.entry(&entry_columns(row)?);
        count += 1;
        Ok(())
    })?;
    let mut update = transaction.prepare("UPDATE wallets SET head = ?2 WHERE n = ?1")?;
    for (n, head) in chains.into_heads() {
        update.execute(params![n, head])?;
    }
    drop(update);
    transaction.execute_batch("DROP TABLE heads_missing")?;
    transaction.commit()?;
    if count > 0 {
        tracing::info!(
            entries = count,
            "the entries of earlier versions were chained"
        );
    }
    Ok(())
}
