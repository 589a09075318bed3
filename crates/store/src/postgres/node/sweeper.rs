//! The sweeper: closes the holds of dead nodes as abandoned.
//!
//! The sweeper first closes an epoch, so that its node can open no more holds, and then closes the holds of the epoch.
//! Each step is a transaction of its own. If the sweeper stops, the next one continues. The holds of tasks belong to
//! their tasks and stay open.

use std::sync::Arc;
use std::time::Duration;

use ledger::{DAY_MS, Micro};
use tokio_postgres::Client;

use super::lease::Node;
use crate::books::{Books, Closed, Limits};
use crate::postgres::connection::connect::{Role, Target};
use crate::postgres::connection::errors::PgError;
use crate::postgres::connection::ledger_connection::{LedgerConnection, ROUND_TRIP_MAX, within};
use crate::postgres::writer::transaction::{
    self, CommitError, HoldOwner, KeyNumbers, LockedWallets, RowsNeeded,
};
use crate::records::call::{Close, End, IfLost};
use crate::records::ids::{Epoch, HoldId};
use crate::stats::Counters;

/// The number of holds that are closed in one transaction.
const CHUNK: i64 = 1_000;
/// The maximum interval between searches for nodes whose lease has expired.
const LOOK_EVERY_MAX: Duration = Duration::from_secs(1);
/// How long the row of a closed epoch is kept for operators.
const KEPT_MS: i64 = 30 * DAY_MS;

const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

pub(crate) struct Sweeper {
    target: Arc<Target>,
    connection: LedgerConnection,
    books: Books,
}

/// The holds that a sweep has closed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Swept {
    pub(crate) holds: u64,
    pub(crate) held: Micro,
}

impl Sweeper {
    pub(crate) fn new(target: &Arc<Target>, role: Role, counters: &Arc<Counters>) -> Self {
        // The sweeper only closes holds and never admits calls.
        let limits = Limits {
            cached_rows_max: 1,
            ..Limits::default()
        };
        Self {
            target: Arc::clone(target),
            connection: LedgerConnection::new(Arc::clone(target), role),
            books: Books::new(Epoch::new(0), limits, Arc::clone(counters)),
        }
    }

    /// Sweeps regularly as long as the process lives.
    pub(crate) async fn run(mut self, node: Arc<Node>) {
        let mut claims = None;
        loop {
            tokio::time::sleep(LOOK_EVERY_MAX.min(node.lease() / 8)).await;
            match self.look(&node, &mut claims).await {
                Ok(swept) if swept.holds > 0 => tracing::warn!(
                    holds = swept.holds,
                    held = %swept.held,
                    "holds of nodes that are gone were closed as abandoned"
                ),
                Ok(_) => {}
                Err(failed) => {
                    tracing::warn!(error = %failed, "holds of other nodes could not be read");
                    claims = None;
                }
            }
        }
    }

    async fn look(&mut self, node: &Node, claims: &mut Option<Client>) -> Result<Swept, PgError> {
        let on = match claims {
            Some(on) if !on.is_closed() => &*on,
            _ => claims.insert(self.target.connect(Role::Node).await?),
        };
        // After an outage of the database, live nodes must not lose their holds (R7).
        if node.has_answered_for_full_lease() {
            close_silent(on).await?;
        }
        self.sweep(on).await
    }

    /// Closes the holds of every closed epoch that no other node is sweeping.
    pub(crate) async fn sweep(&mut self, claims: &Client) -> Result<Swept, PgError> {
        let mut swept = Swept::default();
        loop {
            let claim = "SELECT epoch FROM nodes WHERE swept_at IS NULL AND closed_at IS NOT NULL
                         ORDER BY epoch LIMIT 1 FOR UPDATE SKIP LOCKED";
            within(ROUND_TRIP_MAX, claims.batch_execute("BEGIN")).await?;
            let claimed = within(ROUND_TRIP_MAX, claims.query_opt(claim, &[])).await?;
            let Some(claimed) = claimed else {
                within(ROUND_TRIP_MAX, claims.batch_execute("COMMIT")).await?;
                return Ok(swept);
            };
            let epoch = Epoch::new(claimed.try_get(0)?);
            let closed = self.close_all(epoch, &mut swept).await;
            if closed.is_ok() {
                let done = format!("UPDATE nodes SET swept_at = {NOW} WHERE epoch = $1");
                within(ROUND_TRIP_MAX, claims.execute(&done, &[&epoch.get()])).await?;
            }
            within(ROUND_TRIP_MAX, claims.batch_execute("COMMIT")).await?;
            closed?;
        }
    }

    async fn close_all(&mut self, epoch: Epoch, swept: &mut Swept) -> Result<(), PgError> {
        let mut last = HoldId::first_of(epoch).get() - 1;
        let end = HoldId::first_of(Epoch::new(epoch.get() + 1)).get();
        loop {
            let session = self.connection.session().await?;
            let select = "SELECT h.id, h.amount, k.n, k.id, w.n, w.id FROM holds h
                          JOIN keys k ON k.wallet = h.wallet AND k.n = h.key JOIN wallets w ON w.n = h.wallet
                          WHERE h.id > $1 AND h.id < $2 AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.hold = h.id
                              AND t.wallet = h.wallet AND t.ended_at IS NULL)
                          ORDER BY h.id LIMIT $3";
            let found = async { session.client.query(select, &[&last, &end, &CHUNK]).await };
            let found = within(ROUND_TRIP_MAX, found).await?;
            if found.is_empty() {
                return Ok(());
            }
            let mut needed = RowsNeeded::default();
            for row in found {
                last = row.try_get(0)?;
                let key = KeyNumbers {
                    n: row.try_get(2)?,
                    id: row.try_get(3)?,
                    wallet: row.try_get(4)?,
                    wallet_id: row.try_get(5)?,
                };
                let wallet = key.wallet;
                needed.hold(HoldId::new(last), HoldOwner { wallet, key });
            }
            let closed = self.close(needed).await;
            if let Err(failed) = &closed {
                tracing::debug!(error = %failed, "a sweep was interrupted");
                self.connection.disconnect();
            }
            let chunk = closed?;
            swept.holds += chunk.holds;
            swept.held = swept.held.checked_add(chunk.held).unwrap_or(swept.held);
        }
    }

    /// Closes some holds in one transaction. A hold that is missing was closed by its owner.
    async fn close(&mut self, mut needed: RowsNeeded) -> Result<Swept, PgError> {
        let session = self.connection.session().await?;
        let nobody = Epoch::new(0);
        let begun = transaction::begin(
            session,
            &mut needed,
            LockedWallets::Wait,
            nobody,
            &mut self.books,
        )
        .await?;
        let mut swept = Swept::default();
        let mut holds: Vec<HoldId> = needed.holds.keys().copied().collect();
        holds.sort_unstable();
        for hold in holds {
            let held = self.books.holds.get(&hold).map(|hold| hold.held.hold);
            let closing = Close {
                if_lost: IfLost::Charge,
                hold,
                now: begun.now,
                end: End::Abandoned,
            };
            match self.books.close(closing) {
                Closed::Booked => {
                    let held = held.unwrap_or(Micro::ZERO);
                    swept.holds += 1;
                    swept.held = swept.held.checked_add(held).unwrap_or(swept.held);
                }
                Closed::Late => {}
                // The hold stays open, and `verify` reports it. The other holds are still closed.
                Closed::Unbookable(_) => {
                    tracing::error!(%hold, "a hold stays open: the stored amounts do not contain it");
                }
            }
        }
        match transaction::commit(session, &mut self.books).await {
            Ok(()) => Ok(swept),
            // If the outcome is unknown, the next sweep repeats the step. If it was committed, no hold is left to
            // close.
            Err(CommitError::RolledBack(failed) | CommitError::AnswerLost(failed)) => Err(failed),
        }
    }
}

/// Closes the epochs of nodes whose lease has expired, and deletes those that were swept long ago.
async fn close_silent(on: &Client) -> Result<(), PgError> {
    let close = format!(
        "UPDATE nodes SET closed_at = {NOW} WHERE epoch IN (SELECT epoch FROM nodes
         WHERE swept_at IS NULL AND closed_at IS NULL AND lease_until < {NOW} FOR UPDATE SKIP LOCKED)
         RETURNING epoch, name"
    );
    for row in within(ROUND_TRIP_MAX, on.query(&close, &[])).await? {
        let (epoch, name): (i64, String) = (row.try_get(0)?, row.try_get(1)?);
        tracing::warn!(
            epoch,
            node = name,
            "the lease of a node has expired; its epoch is closed"
        );
    }
    let forget = format!("DELETE FROM nodes WHERE swept_at < {NOW} - $1");
    within(ROUND_TRIP_MAX, on.execute(&forget, &[&KEPT_MS])).await?;
    Ok(())
}
