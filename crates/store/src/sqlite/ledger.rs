//! The ledger inside one connection: transactions, the rows they decide on, and what they write.
//!
//! Only the writer thread has one (and recovery, before that thread starts). Rows are cached
//! between transactions; the cache is dropped when a transaction fails and when another process
//! has written (reliability W14).

use std::collections::hash_map::Entry;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::insert::Values;
use super::rows::{book_key, book_wallet, open_hold};
use super::statements::Statements;
use crate::books::{Books, Posting};
use crate::command::Closing;
use crate::ids::{Epoch, HoldId, KeyId};
use crate::stats::Counters;

/// A write that changes nothing.
const PROBE: &str = "UPDATE epochs SET started_at = started_at
                     WHERE epoch = (SELECT max(epoch) FROM epochs)";

pub(super) struct Ledger<'c> {
    pub(super) connection: &'c Connection,
    pub(super) sql: Statements<'c>,
    pub(super) books: Books,
    /// This start.
    pub(super) epoch: Epoch,
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
            books: Books::new(epoch, cached_rows_max, counters),
            epoch,
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
                    self.books.counters.foreign_writes.add(1);
                }
                self.data_version = version;
                self.books.forget();
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
        if self.books.pending.wrote {
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
        let wrote = !self.books.pending.is_empty();
        if wrote {
            self.write()?;
        } else if self.doubtful {
            // Only a write can tell whether writing is possible again.
            self.connection.execute(PROBE, [])?;
        }
        self.sql.commit.execute([])?;
        self.doubtful = false;
        self.books.clean();
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
        self.books.forget();
        self.books.pending.take_closings()
    }

    pub(super) fn is_in_transaction(&self) -> bool {
        !self.connection.is_autocommit()
    }

    /// Reads the number of open holds anew, after a failure has made the count doubtful.
    pub(super) fn recount(&mut self) -> rusqlite::Result<()> {
        let count: i64 = self
            .connection
            .query_row("SELECT count(*) FROM holds", [], |row| row.get(0))?;
        self.books.open_holds = u64::try_from(count).unwrap_or(0);
        Ok(())
    }

    fn write(&mut self) -> rusqlite::Result<()> {
        self.sql.post.all(&self.books.pending.postings, post)?;
        for id in &self.books.pending.closed {
            self.sql.delete_hold.execute([id.get()])?;
        }
        for id in &self.books.pending.opened {
            let Some(hold) = self.books.holds.get(id) else {
                continue; // Closed in the same batch.
            };
            let key = self.books.keys.get_mut(hold.key).map(|key| key.n);
            self.sql.open_hold.execute(params![
                id.get(),
                hold.wallet,
                key,
                hold.held.hold.get(),
                sql_tokens(hold.held.tokens),
                hold.held.counts,
                hold.request_id,
                hold.opened_at.get(),
                hold.booked.get(),
            ])?;
        }
        for id in &self.books.pending.changed {
            if let Some(hold) = self.books.holds.get(id) {
                let tokens = sql_tokens(hold.held.tokens);
                self.sql.change_hold.execute(params![
                    id.get(),
                    hold.held.hold.get(),
                    tokens,
                    hold.held.counts,
                    hold.booked.get(),
                ])?;
            }
        }
        for n in &self.books.pending.wallets {
            if let Some(row) = self.books.wallets.get_mut(*n) {
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
        for id in &self.books.pending.keys {
            if let Some(row) = self.books.keys.get_mut(*id) {
                let key = &row.key;
                self.sql.write_key_state.execute(params![
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

    /// Brings in the rows of a key and its wallet, unless they are there.
    pub(super) fn load_key(&mut self, key: KeyId) -> rusqlite::Result<()> {
        if self.books.keys.get_mut(key).is_none() {
            let found = self.sql.key.query_row([key], book_key).optional()?;
            let Some(row) = found else {
                return Ok(());
            };
            self.books.keys.insert(key, row);
        }
        match self.books.keys.get_mut(key).map(|row| row.wallet) {
            Some(n) => self.load_wallet(n),
            None => Ok(()),
        }
    }

    /// Brings in an open hold with its key and wallet, unless they are there.
    pub(super) fn load_hold(&mut self, id: HoldId) -> rusqlite::Result<()> {
        let key = match self.books.holds.entry(id) {
            Entry::Occupied(hold) => hold.get().key,
            Entry::Vacant(place) => {
                // The row of a hold that was closed in this batch is still in the table.
                if self.books.pending.closed.contains(&id) {
                    return Ok(());
                }
                let found = self.sql.hold.query_row([id.get()], open_hold).optional()?;
                let Some(hold) = found else {
                    return Ok(());
                };
                place.insert(hold).key
            }
        };
        self.load_key(key)
    }

    /// Brings in a wallet by its number, unless it is there.
    pub(super) fn load_wallet(&mut self, n: i64) -> rusqlite::Result<()> {
        if self.books.wallets.get_mut(n).is_none() {
            let row = self.sql.wallet.query_row([n], book_wallet)?;
            self.books.wallets.insert(n, row);
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
    values.add(entry.booked)
}

fn aborted(why: &str) -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_ABORT_ROLLBACK);
    rusqlite::Error::SqliteFailure(code, Some(why.to_owned()))
}

fn sql_tokens(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}
