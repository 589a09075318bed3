//! Computes the heads of wallets with entries from before chains existed. This happens once, after the migration.

use tokio_postgres::Client;

use crate::chain::{Chains, Head};
use crate::postgres::reads::verify::each;
use crate::postgres::rows::{ENTRY, entry_columns};
use crate::records::ids::PriceVersion;

type Read<T> = Result<T, tokio_postgres::Error>;

/// Removes the time limit, because there may be many entries, and keeps other sessions from writing meanwhile.
const LOCK_WALLETS: &str = "SET LOCAL statement_timeout = 0; LOCK TABLE wallets IN EXCLUSIVE MODE";

/// Whether a migration has left heads to be computed.
pub(crate) async fn are_missing(on: &Client) -> Read<bool> {
    let table = "SELECT to_regclass('heads_missing') IS NOT NULL";
    on.query_one(table, &[]).await?.try_get(0)
}

/// Computes the head of every wallet from its entries, in one transaction. If the process is killed, the next start
/// repeats it.
pub(crate) async fn fill(on: &mut Client) -> Read<()> {
    if !are_missing(on).await? {
        return Ok(());
    }
    let transaction = on.transaction().await?;
    transaction.batch_execute(LOCK_WALLETS).await?;
    let mut chains = Chains::default();
    each(&transaction, "SELECT n, id FROM wallets", |row| {
        chains.wallet(row.try_get(0)?, row.try_get(1)?);
        Ok(())
    })
    .await?;
    each(&transaction, "SELECT n, id FROM keys", |row| {
        chains.key(row.try_get(0)?, row.try_get(1)?);
        Ok(())
    })
    .await?;
    let prices = "SELECT id, model, card FROM price_versions";
    each(&transaction, prices, |row| {
        let (model, card) = (row.try_get(1)?, row.try_get(2)?);
        chains.price_version(PriceVersion::new(row.try_get(0)?, model, card));
        Ok(())
    })
    .await?;
    let entries = format!("SELECT {ENTRY} FROM entries ORDER BY wallet, seq");
    let mut count: u64 = 0;
    each(&transaction, &entries, |row| {
        chains.entry(&entry_columns(row)?);
        count += 1;
        Ok(())
    })
    .await?;
    let (wallets, heads): (Vec<i64>, Vec<Head>) = chains.into_heads().unzip();
    let update =
        "UPDATE wallets w SET head = u.head FROM unnest($1::bigint[], $2::bytea[]) AS u (n, head)
                  WHERE w.n = u.n";
    transaction.execute(update, &[&wallets, &heads]).await?;
    transaction
        .batch_execute("DROP TABLE heads_missing")
        .await?;
    transaction.commit().await?;
    if count > 0 {
        tracing::info!(
            entries = count,
            "the entries of earlier versions were chained"
        );
    }
    Ok(())
}
