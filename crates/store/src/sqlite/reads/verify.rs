//! Reads all rows for a verification, in one snapshot and without changes.

use rusqlite::{Connection, Row};

use crate::chain::WalletHead;
use crate::records::ids::Epoch;
use crate::sqlite::rows::{
    ENTRY, FROM_KEYS, KEY, WALLET, balance_point, entry_columns, key_row, wallet_row,
};
use crate::verify::{Check, HoldFound, INCOMPLETE_TASKS, KeyFound, VerifyReport, WalletFound};

pub(crate) fn verify(on: &Connection, noted: &[WalletHead]) -> rusqlite::Result<VerifyReport> {
    let snapshot = on.unchecked_transaction()?;
    // Only the last epoch may own open holds.
    let epoch = "SELECT coalesce(max(epoch), 0) FROM epochs";
    let epoch = snapshot.query_row(epoch, [], |row| row.get(0))?;
    let mut check = Check::new([Epoch::new(epoch)], noted);
    let wallets = format!("SELECT {WALLET}, w.n FROM wallets w");
    each(&snapshot, &wallets, |row| {
        check.wallet(wallet_found(row)?);
        Ok(())
    })?;
    let keys = format!("SELECT {KEY} {FROM_KEYS}");
    each(&snapshot, &keys, |row| {
        check.key(key_found(row)?);
        Ok(())
    })?;
    let prices = "SELECT id, model, card FROM price_versions";
    each(&snapshot, prices, |row| {
        let (model, card) = (row.get_ref(1)?.as_str()?, row.get_ref(2)?.as_str()?);
        check.price_version(row.get(0)?, model, card);
        Ok(())
    })?;
    let costs = "SELECT id, model, channel, card FROM cost_versions";
    each(&snapshot, costs, |row| {
        let text = |column| Ok::<_, rusqlite::Error>(row.get_ref(column)?.as_str()?);
        check.cost_version(row.get(0)?, text(1)?, text(2)?, text(3)?);
        Ok(())
    })?;
    let holds = "SELECT id, wallet, key, amount, counts, EXISTS (SELECT 1 FROM tasks t WHERE t.hold = holds.id
                 AND t.ended_at IS NULL), booked, exposure, cost_booked FROM holds";
    each(&snapshot, holds, |row| {
        check.hold(&hold_found(row)?);
        Ok(())
    })?;
    let points = "SELECT wallet, seq, posted_at, balance, gift_balance, credit_used, charged FROM balance_points";
    each(&snapshot, points, |row| {
        check.point(row.get(0)?, balance_point(row, 1)?);
        Ok(())
    })?;
    // Ordered by row number, which is the order of posting within a wallet and the order in the
    // file.
    let entries = format!("SELECT {ENTRY} FROM entries ORDER BY n");
    each(&snapshot, &entries, |row| {
        check.entry(&entry_columns(row)?);
        Ok(())
    })?;
    let twice = "SELECT closes, min(wallet), count(*) FROM entries WHERE closes IS NOT NULL
                 GROUP BY closes HAVING count(*) > 1";
    each(&snapshot, twice, |row| {
        check.closed_twice(row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(())
    })?;
    let both = "SELECT h.id, h.wallet FROM holds h WHERE EXISTS (SELECT 1 FROM entries e WHERE e.closes = h.id)";
    each(&snapshot, both, |row| {
        check.open_and_closed(row.get(0)?, row.get(1)?);
        Ok(())
    })?;
    for (select, lacks) in INCOMPLETE_TASKS {
        each(&snapshot, select, |row| {
            check.task_lacks(row.get(0)?, &row.get::<_, String>(1)?, lacks);
            Ok(())
        })?;
    }
    snapshot.finish()?;
    Ok(check.finish())
}

pub(crate) fn each(
    on: &Connection,
    sql: &str,
    mut feed: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let mut select = on.prepare(sql)?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        feed(row)?;
    }
    Ok(())
}

fn wallet_found(row: &Row<'_>) -> rusqlite::Result<WalletFound> {
    let stored = wallet_row(row)?;
    Ok(WalletFound {
        n: row.get("n")?,
        id: stored.id,
        wallet: stored.wallet,
        entries: row.get(9)?,
        holds_opened: row.get(10)?,
        posted_at: row.get(13)?,
        charged: row.get(14)?,
        head: row.get(11).ok(),
    })
}

fn key_found(row: &Row<'_>) -> rusqlite::Result<KeyFound> {
    let stored = key_row(row)?;
    Ok(KeyFound {
        n: row.get(16)?,
        id: stored.id,
        wallet: row.get(17)?,
        key: stored.key,
    })
}

fn hold_found(row: &Row<'_>) -> rusqlite::Result<HoldFound> {
    Ok(HoldFound {
        id: row.get(0)?,
        wallet: row.get(1)?,
        key: row.get(2)?,
        amount: row.get(3)?,
        counts_in_flight: row.get(4)?,
        of_task: row.get(5)?,
        booked: row.get(6)?,
        exposure: row.get(7)?,
        cost_booked: row.get(8)?,
    })
}
