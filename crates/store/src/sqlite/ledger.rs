//! The ledger inside one connection: transactions, the rows they decide on, and what they write.
//!
//! Only the writer thread has one (and recovery, before that thread starts). Rows are cached
//! between transactions; the cache is dropped when a transaction fails and when another process
//! has written (reliability W14).

use std::collections::hash_map::Entry;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::cache::{Generations, IdMap};
use super::pending::Pending;
use super::rows::{CachedKey, CachedWallet, HoldRow, OpenHold};
use super::statements::Statements;
use crate::command::Closing;
use crate::ids::{Epoch, HoldId, KeyId};
use crate::stats::Counters;

/// Open holds kept in memory; above it they are read from the table when they are closed.
const CACHED_HOLDS_MAX: usize = 65_536;

/// A write that changes nothing.
const PROBE: &str = "UPDATE epochs SET started_at = started_at
                     WHERE epoch = (SELECT max(epoch) FROM epochs)";

pub(super) struct Ledger<'c> {
    pub(super) connection: &'c Connection,
    pub(super) sql: Statements<'c>,
    pub(super) wallets: Generations<i64, CachedWallet>,
    pub(super) keys: Generations<KeyId, CachedKey>,
    pub(super) holds: IdMap<HoldId, OpenHold>,
    pub(super) pending: Pending,
    /// The last hold this process opened.
    pub(super) last_hold: HoldId,
    pub(super) open_holds: u64,
    pub(super) counters: Arc<Counters>,
    data_version: i64,
    /// The last transaction failed.
    doubtful: bool,
}

impl<'c> Ledger<'c> {
    pub(super) fn new(
        connection: &'c Connection,
        epoch: Epoch,
        cached_rows_max: usize,
        counters: Arc<Counters>,
    ) -> rusqlite::Result<Self> {
        Ok(Self {
            connection,
            sql: Statements::prepare(connection)?,
            wallets: Generations::new(cached_rows_max),
            keys: Generations::new(cached_rows_max),
            holds: IdMap::default(),
            pending: Pending::default(),
            last_hold: HoldId::first_of(epoch),
            open_holds: 0,
            counters,
            data_version: 0,
            doubtful: false,
        })
    }

    /// Begins a transaction. Nobody else writes until it ends, so what is cached now is true.
    pub(super) fn begin(&mut self) -> rusqlite::Result<()> {
        self.sql.begin.execute([])?;
        match self.sql.data_version.query_row([], |row| row.get(0)) {
            Ok(version) if version == self.data_version => Ok(()),
            Ok(version) => {
                if self.data_version != 0 {
                    self.counters.foreign_writes.add(1);
                }
                self.data_version = version;
                self.forget();
                Ok(())
            }
            Err(error) => {
                self.roll_back();
                Err(error)
            }
        }
    }

    /// Ends the transaction, which has decided but not written, and begins it anew, so that a log
    /// that was copied meanwhile can begin anew with it. What was decided stands, unless somebody
    /// has written in between.
    pub(super) fn begin_again(&mut self) -> rusqlite::Result<()> {
        if self.pending.wrote {
            return Ok(());
        }
        self.sql.commit.execute([])?;
        self.sql.begin.execute([])?;
        let version: i64 = self.sql.data_version.query_row([], |row| row.get(0))?;
        if version != self.data_version {
            return Err(aborted("another process wrote before the batch"));
        }
        Ok(())
    }

    /// Writes what was decided and commits it. Tells whether there was anything to write.
    pub(super) fn commit(&mut self) -> rusqlite::Result<bool> {
        if !self.is_in_transaction() {
            // The database has ended the transaction by itself; what follows would be written
            // piece by piece.
            return Err(aborted("the database has rolled the transaction back"));
        }
        let wrote = !self.pending.is_empty();
        if wrote {
            self.write()?;
        } else if self.doubtful {
            // Only a write can tell whether writing is possible again.
            self.connection.execute(PROBE, [])?;
        }
        self.sql.commit.execute([])?;
        self.doubtful = false;
        self.clean();
        Ok(wrote)
    }

    /// Undoes the transaction. What comes back are the closes it had booked, to be booked again.
    pub(super) fn roll_back(&mut self) -> Vec<Closing> {
        self.doubtful = true;
        if self.is_in_transaction()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "the ledger could not roll back");
        }
        self.forget();
        self.pending.take_closings()
    }

    pub(super) fn is_in_transaction(&self) -> bool {
        !self.connection.is_autocommit()
    }

    /// Reads the number of open holds anew, after a failure has made the count doubtful.
    pub(super) fn recount(&mut self) -> rusqlite::Result<()> {
        let count: i64 = self
            .connection
            .query_row("SELECT count(*) FROM holds", [], |row| row.get(0))?;
        self.open_holds = u64::try_from(count).unwrap_or(0);
        Ok(())
    }

    fn forget(&mut self) {
        self.wallets.clear();
        self.keys.clear();
        self.holds.clear();
    }

    /// After a commit every row is as the table has it.
    fn clean(&mut self) {
        for n in &self.pending.wallets {
            if let Some(wallet) = self.wallets.get_mut(*n) {
                wallet.dirty = false;
            }
        }
        for id in &self.pending.keys {
            if let Some(key) = self.keys.get_mut(*id) {
                key.dirty = false;
            }
        }
        for id in self.pending.opened.iter().chain(&self.pending.changed) {
            if let Some(hold) = self.holds.get_mut(id) {
                hold.row = HoldRow::Same;
            }
        }
        self.pending.clear();
        self.wallets.age();
        self.keys.age();
        if self.holds.len() > CACHED_HOLDS_MAX {
            self.holds.clear();
        }
    }

    fn write(&mut self) -> rusqlite::Result<()> {
        for posting in &self.pending.postings {
            posting.write(&mut self.sql)?;
        }
        for id in &self.pending.closed {
            self.sql.delete_hold.execute([id.get()])?;
        }
        for id in &self.pending.opened {
            let Some(hold) = self.holds.get(id) else {
                continue; // Closed in the same batch.
            };
            let key = self.keys.get_mut(hold.key).map(|key| key.n);
            self.sql.open_hold.execute(params![
                id.get(),
                hold.wallet,
                key,
                hold.held.hold.get(),
                sql_tokens(hold.held.tokens),
                hold.held.counts,
                hold.request_id,
                hold.opened_at.get(),
            ])?;
        }
        for id in &self.pending.changed {
            if let Some(hold) = self.holds.get(id) {
                let tokens = sql_tokens(hold.held.tokens);
                self.sql.change_hold.execute(params![
                    id.get(),
                    hold.held.hold.get(),
                    tokens,
                    hold.held.counts
                ])?;
            }
        }
        for n in &self.pending.wallets {
            if let Some(row) = self.wallets.get_mut(*n) {
                let wallet = &row.wallet;
                self.sql.update_wallet.execute(params![
                    n,
                    wallet.status.as_str(),
                    wallet.balance.get(),
                    wallet.gift_balance.get(),
                    wallet.frozen.get(),
                    wallet.credit_limit.get(),
                    wallet.credit_used.get(),
                    row.entries,
                    row.holds_opened,
                ])?;
            }
        }
        for id in &self.pending.keys {
            if let Some(row) = self.keys.get_mut(*id) {
                let key = &row.key;
                self.sql.update_key.execute(params![
                    row.n,
                    key.usage.get(),
                    key.frozen.get(),
                    key.open_holds,
                    key.rpm.state(),
                    key.tpm.state(),
                ])?;
            }
        }
        Ok(())
    }

    /// The rows of a key and its wallet, from the cache or the table.
    pub(super) fn rows_of(&mut self, key: KeyId) -> rusqlite::Result<Option<Rows<'_>>> {
        if self.keys.get_mut(key).is_none() {
            let Some(row) = self.sql.key.query_row([key], CachedKey::read).optional()? else {
                return Ok(None);
            };
            self.keys.insert(key, row);
        }
        let Some(key_row) = self.keys.get_mut(key) else {
            return Ok(None);
        };
        let n = key_row.wallet;
        if self.wallets.get_mut(n).is_none() {
            let row = self.sql.wallet.query_row([n], CachedWallet::read)?;
            self.wallets.insert(n, row);
        }
        let Some(wallet) = self.wallets.get_mut(n) else {
            return Ok(None);
        };
        Ok(Some(Rows {
            id: key,
            wallet,
            key: key_row,
            pending: &mut self.pending,
            holds: &mut self.holds,
        }))
    }

    /// Sees to it that an open hold is in memory; tells whether there is such a hold.
    pub(super) fn load_hold(&mut self, id: HoldId) -> rusqlite::Result<bool> {
        if let Entry::Vacant(place) = self.holds.entry(id) {
            // The row of a hold that was closed in this batch is still in the table.
            if self.pending.closed.contains(&id) {
                return Ok(false);
            }
            let Some(hold) = self
                .sql
                .hold
                .query_row([id.get()], OpenHold::read)
                .optional()?
            else {
                return Ok(false);
            };
            place.insert(hold);
        }
        Ok(true)
    }

    /// The wallet's row by its number, from the cache or the table.
    pub(super) fn wallet_row(
        &mut self,
        n: i64,
    ) -> rusqlite::Result<Option<(&mut CachedWallet, &mut Pending)>> {
        if self.wallets.get_mut(n).is_none() {
            let row = self.sql.wallet.query_row([n], CachedWallet::read)?;
            self.wallets.insert(n, row);
        }
        Ok(self.wallets.get_mut(n).map(|row| (row, &mut self.pending)))
    }
}

/// A key and its wallet, to be decided on.
pub(super) struct Rows<'a> {
    id: KeyId,
    pub(super) wallet: &'a mut CachedWallet,
    pub(super) key: &'a mut CachedKey,
    pub(super) pending: &'a mut Pending,
    pub(super) holds: &'a mut IdMap<HoldId, OpenHold>,
}

impl Rows<'_> {
    /// Both rows have changed and are written with the batch.
    pub(super) fn touch(&mut self) {
        self.wallet.touch(self.key.wallet, self.pending);
        self.touch_key();
    }

    pub(super) fn touch_key(&mut self) {
        if !self.key.dirty {
            self.key.dirty = true;
            self.pending.keys.push(self.id);
        }
    }
}

impl CachedWallet {
    pub(super) fn touch(&mut self, n: i64, pending: &mut Pending) {
        if !self.dirty {
            self.dirty = true;
            pending.wallets.push(n);
        }
    }

    /// The number of the next entry.
    pub(super) fn next_entry(&mut self) -> i64 {
        self.entries = self.entries.saturating_add(1);
        self.entries
    }
}

fn aborted(why: &str) -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_ABORT_ROLLBACK);
    rusqlite::Error::SqliteFailure(code, Some(why.to_owned()))
}

fn sql_tokens(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}
