//! Begins and commits transactions, and writes the decisions of a batch.

use std::sync::Arc;

use ledger::UnixMs;
use rusqlite::{Connection, params};

use super::insert::Values;
use super::statements::Statements;
use super::writer_lock::WriterLock;
use crate::books::{PendingWrite, Posting};
use crate::records::balance_point::BalancePoint;
use crate::stats::Counters;

/// A statement that writes without changing any value.
const PROBE: &str = "UPDATE epochs SET started_at = started_at
                     WHERE epoch = (SELECT max(epoch) FROM epochs)";

/// Writes batches. Consists of a connection with its statements, and the lock that allows it to write.
pub(crate) struct BatchWriter<'c> {
    connection: &'c Connection,
    pub(crate) sql: Statements<'c>,
    /// The decisions that the current transaction will write.
    pub(crate) pending_write: PendingWrite,
    data_version: i64,
    last_failed: bool,
    pub(crate) counters: Arc<Counters>,
    pub(crate) writer_lock: WriterLock,
}

/// Whether rows that were cached in earlier transactions are still correct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheState {
    /// No other process has written since the last transaction.
    Valid,
    /// Another process may have written.
    Stale,
}

impl<'c> BatchWriter<'c> {
    pub(crate) fn new(
        connection: &'c Connection,
        counters: Arc<Counters>,
        writer_lock: WriterLock,
    ) -> rusqlite::Result<Self> {
        Ok(Self {
            connection,
            sql: Statements::prepare(connection)?,
            pending_write: PendingWrite::default(),
            data_version: 0,
            last_failed: false,
            counters,
            writer_lock,
        })
    }

    /// Takes the writer lock and begins a transaction. The lock is kept until it is released explicitly.
    pub(crate) fn begin(&mut self) -> rusqlite::Result<CacheState> {
        self.writer_lock.acquire()?;
        if let Err(error) = self.sql.begin.execute([]) {
            self.writer_lock.release();
            return Err(error);
        }
        let version = match self.data_version() {
            Ok(version) => version,
            Err(error) => {
                self.roll_back();
                return Err(error);
            }
        };
        if version == self.data_version {
            return Ok(CacheState::Valid);
        }
        if self.data_version != 0 {
            self.counters.foreign_writes.add(1);
        }
        self.data_version = version;
        Ok(CacheState::Stale)
    }

    /// Begins the next transaction under the same writer lock. If a program that ignores the writer lock holds the
    /// database's own lock, this fails at once.
    pub(crate) fn begin_next(&mut self) -> rusqlite::Result<CacheState> {
        let busy_wait = self.writer_lock.busy_wait.clone();
        busy_wait.without(|| self.begin())
    }

    /// Ends a transaction that has written nothing and begins a new one. Fails if another process wrote in between.
    pub(crate) fn restart(&mut self) -> rusqlite::Result<()> {
        self.sql.commit.execute([])?;
        self.sql.begin.execute([])?;
        if self.data_version()? != self.data_version {
            return Err(aborted("another process wrote before the batch"));
        }
        Ok(())
    }

    fn data_version(&mut self) -> rusqlite::Result<i64> {
        self.sql.data_version.query_row([], |row| row.get(0))
    }

    /// Writes `pending_write` and commits. Returns whether there was anything to write.
    pub(crate) fn write_and_commit(&mut self) -> rusqlite::Result<bool> {
        if !self.is_in_transaction() {
            // The database has ended the transaction on its own, so further statements would be committed one by one.
            return Err(aborted("the database has rolled the transaction back"));
        }
        let wrote = !self.pending_write.is_empty();
        if wrote {
            self.write()?;
        } else if self.last_failed {
            // Only a write can show whether writes succeed again.
            self.connection.execute(PROBE, [])?;
        }
        if let Err(error) = self.sql.commit.execute([]) {
            if !self.was_committed() {
                return Err(error);
            }
            tracing::warn!(%error, "a commit was reported as failed and has happened");
        }
        self.last_failed = false;
        self.pending_write.changes.count(&self.counters);
        self.pending_write.clear();
        Ok(wrote)
    }

    /// Whether the transaction was committed although the database reported a failure. One of its rows proves that all
    /// of them are stored.
    fn was_committed(&self) -> bool {
        if self.is_in_transaction() {
            return false;
        }
        let closes = |posting: &Posting| posting.columns().closes;
        let (table, id) = match self.pending_write.changes.postings.iter().find_map(closes) {
            Some(id) => ("entries WHERE closes", id),
            None => match self.pending_write.opened.first() {
                Some((id, ..)) => ("holds WHERE id", id.get()),
                None => return false,
            },
        };
        let there = format!("SELECT EXISTS (SELECT 1 FROM {table} = ?1)");
        let there = self.connection.query_row(&there, [id], |row| row.get(0));
        there.unwrap_or(false)
    }

    /// Rolls the transaction back and releases the writer lock.
    pub(crate) fn roll_back(&mut self) {
        self.last_failed = true;
        if self.is_in_transaction()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "the ledger could not roll back");
        }
        self.writer_lock.release();
    }

    pub(crate) fn is_in_transaction(&self) -> bool {
        !self.connection.is_autocommit()
    }

    fn write(&mut self) -> rusqlite::Result<()> {
        let Self {
            sql, pending_write, ..
        } = self;
        let changes = &pending_write.changes;
        if !changes.points.is_empty() {
            keep_points(self.connection, &changes.points)?;
        }
        if changes.has_manual {
            sql.post_manual.all(&changes.postings, post_manual)?;
        } else {
            sql.post.all(&changes.postings, post)?;
        }
        for id in &pending_write.changes.closed {
            sql.delete_hold.execute([id.get()])?;
        }
        for (id, key, hold) in &pending_write.opened {
            sql.open_hold.execute(params![
                id.get(),
                hold.wallet,
                key,
                hold.held.hold.get(),
                sql_tokens(hold.held.tokens),
                hold.held.counts_in_flight,
                hold.request_id.as_str(),
                hold.opened_at.get(),
                hold.booked.get(),
                hold.held.exposure.get(),
                hold.cost_booked.get(),
            ])?;
        }
        for (id, hold) in &pending_write.changed {
            sql.change_hold.execute(params![
                id.get(),
                hold.held.hold.get(),
                sql_tokens(hold.held.tokens),
                hold.held.counts_in_flight,
                hold.booked.get(),
                hold.held.exposure.get(),
                hold.cost_booked.get(),
            ])?;
        }
        for (n, row) in &pending_write.wallets {
            let wallet = &row.wallet;
            sql.update_wallet.execute(params![
                n,
                wallet.balance.get(),
                wallet.gift_balance.get(),
                wallet.frozen.get(),
                wallet.credit_used.get(),
                row.entries,
                row.holds_opened,
                row.head,
                wallet.exposed.get(),
                row.posted_at.get(),
                row.charged.get(),
            ])?;
        }
        for (n, key, last_used_at) in &pending_write.keys {
            let window = key.window.unwrap_or_default();
            sql.write_key_state.execute(params![
                n,
                key.usage.get(),
                key.frozen.get(),
                key.open_holds,
                key.rpm.state(),
                key.tpm.state(),
                window.usage_before.get(),
                window.period.ends_at.get(),
                window.period.entries_before,
                last_used_at.map(UnixMs::get),
            ])?;
        }
        Ok(())
    }
}

fn post(posting: &Posting, values: &mut Values<'_, '_>) -> rusqlite::Result<()> {
    let entry = posting.columns();
    values.add(entry.wallet)?;
    values.add(entry.seq)?;
    values.add(entry.kind)?;
    values.add(entry.at)?;
    values.add(entry.closes)?;
    values.add(entry.key)?;
    values.add(entry.held)?;
    values.add(entry.charge)?;
    values.add(entry.delta.balance)?;
    values.add(entry.delta.gift_balance)?;
    values.add(entry.delta.credit_used)?;
    values.add(entry.opened_at)?;
    values.add(entry.request_id)?;
    values.add(entry.meter)?;
    values.add(entry.price_version)?;
    values.add(entry.basis)?;
    values.add(entry.note)?;
    values.add(entry.part_of)?;
    values.add(entry.booked)?;
    values.add(entry.cost)?;
    values.add(entry.cost_version)
}

/// Posts an entry, including the columns that only manual entries have.
fn post_manual(posting: &Posting, values: &mut Values<'_, '_>) -> rusqlite::Result<()> {
    post(posting, values)?;
    let entry = posting.columns();
    values.add(entry.reference)?;
    values.add(entry.refund_of)?;
    values.add(entry.actor)
}

/// Stores balance points before the entries that follow them.
fn keep_points(on: &Connection, points: &[(i64, BalancePoint)]) -> rusqlite::Result<()> {
    let mut keep = on.prepare_cached(
        "INSERT INTO balance_points (wallet, seq, posted_at, balance, gift_balance, credit_used, charged, after_n)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, (SELECT coalesce(max(n), 0) FROM entries))",
    )?;
    for (wallet, point) in points {
        keep.execute(params![
            wallet,
            point.seq,
            point.posted_at.get(),
            point.balances.balance.get(),
            point.balances.gift_balance.get(),
            point.balances.credit_used.get(),
            point.charged.get(),
        ])?;
    }
    Ok(())
}

fn aborted(why: &str) -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_ABORT_ROLLBACK);
    rusqlite::Error::SqliteFailure(code, Some(why.to_owned()))
}

fn sql_tokens(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}
