//! Recovery at startup: begins an epoch, and closes the holds of earlier epochs.

use ledger::{Micro, UnixMs};
use rusqlite::{Connection, params};

use crate::books::Closed;
use crate::records::call::{Close, End, IfLost};
use crate::records::ids::{Epoch, HoldId};
use crate::records::recovery::Recovery;
use crate::sqlite::writer::ledger::Ledger;

/// The number of holds that are closed in one transaction.
const CHUNK: i64 = 4_096;

/// Begins a new epoch. Holds opened from now on belong to it.
pub(super) fn begin_epoch(on: &Connection, now: UnixMs) -> rusqlite::Result<Epoch> {
    let insert = "INSERT INTO epochs (epoch, started_at)
                  SELECT 1 + coalesce(max(epoch), 0), ?1 FROM epochs RETURNING epoch";
    on.query_row(insert, params![now.get()], |row| row.get(0))
        .map(Epoch::new)
}

/// Closes the holds of earlier epochs as abandoned, because the outcome of their calls cannot be learned. If the
/// process is killed meanwhile, the next start continues.
pub(super) fn close_orphans(
    ledger: &mut Ledger<'_>,
    epoch: Epoch,
    now: UnixMs,
) -> rusqlite::Result<Recovery> {
    let mut recovery = Recovery {
        epoch,
        abandoned: 0,
        held: Micro::ZERO,
    };
    let mut last = HoldId::new(0);
    loop {
        ledger.begin()?;
        let orphans = orphans(ledger.connection, last, epoch)?;
        let Some((end, _)) = orphans.last() else {
            ledger.commit()?;
            ledger.recount()?;
            return Ok(recovery);
        };
        last = *end;
        for (hold, held) in orphans {
            let closing = Close {
                if_lost: IfLost::Charge,
                hold,
                now,
                end: End::Abandoned,
            };
            match ledger.close(closing).map_err(|unread| unread.1)? {
                Closed::Booked | Closed::Late => {
                    recovery.abandoned += 1;
                    recovery.held = recovery.held.checked_add(held).unwrap_or(recovery.held);
                }
                // The hold stays open, and `verify` reports it. The other holds are still closed.
                Closed::Unbookable(_) => {
                    tracing::error!(%hold, "a hold of an earlier start stays open: the stored amounts do not contain it");
                }
            }
        }
        ledger.commit()?;
    }
}

fn orphans(on: &Connection, after: HoldId, epoch: Epoch) -> rusqlite::Result<Vec<(HoldId, Micro)>> {
    // The hold of a task that has not ended belongs to the task.
    let select = "SELECT id, amount FROM holds WHERE id > ?1 AND id < ?2 AND NOT EXISTS
                  (SELECT 1 FROM tasks t WHERE t.hold = holds.id AND t.ended_at IS NULL) ORDER BY id LIMIT ?3";
    let mut select = on.prepare_cached(select)?;
    let bounds = params![after.get(), HoldId::first_of(epoch).get(), CHUNK];
    let rows = select.query_map(bounds, |row| {
        Ok((HoldId::new(row.get(0)?), Micro::new(row.get(1)?)))
    })?;
    rows.collect()
}
