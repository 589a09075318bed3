//! The ledger of one connection: the rows on which its transactions decide.
//!
//! Only the writer thread has a ledger, except that the recovery uses one before that thread starts. Rows stay cached
//! between transactions. The cache is dropped when a transaction has failed or another process has written (W14).

use std::collections::hash_map::Entry;
use std::sync::Arc;

use ledger::Micro;
use rusqlite::{Connection, OptionalExtension as _};

use super::batch_writer::{BatchWriter, CacheState};
use super::writer_lock::WriterLock;
use crate::books::{Books, FailedBatch, Limits, OpenHold};
use crate::cache::IdMap;
use crate::records::call::{Close, IfLost};
use crate::records::ids::{Epoch, HoldId, KeyId};
use crate::sqlite::rows::{book_key, book_wallet, open_hold};
use crate::stats::Counters;

pub(crate) struct Ledger<'c> {
    pub(crate) connection: &'c Connection,
    pub(crate) batch_writer: BatchWriter<'c>,
    pub(crate) books: Books,
    /// Holds of failed transactions whose calls have not ended. There are at most as many as there were calls in flight
    /// when the first commit failed, because no call is admitted until a commit succeeds.
    pub(crate) lost: IdMap<HoldId, OpenHold>,
    /// The sum of the booked and the held amount of each hold whose growth was lost in a failed transaction. An item is
    /// removed when its hold is loaded.
    lost_extensions: IdMap<HoldId, Micro>,
    pub(crate) epoch: Epoch,
}

impl<'c> Ledger<'c> {
    pub(crate) fn new(
        connection: &'c Connection,
        epoch: Epoch,
        limits: Limits,
        counters: Arc<Counters>,
        writer_lock: WriterLock,
    ) -> rusqlite::Result<Self> {
        Ok(Self {
            connection,
            batch_writer: BatchWriter::new(connection, Arc::clone(&counters), writer_lock)?,
            books: Books::new(epoch, limits, counters),
            lost: IdMap::default(),
            lost_extensions: IdMap::default(),
            epoch,
        })
    }

    /// Begins a transaction. No other process writes until it ends, so the cached rows stay correct.
    pub(crate) fn begin(&mut self) -> rusqlite::Result<()> {
        if self.batch_writer.begin()? == CacheState::Stale {
            self.books.forget();
        }
        Ok(())
    }

    /// Ends the transaction and begins a new one, if nothing was written yet. A log that was copied meanwhile can then
    /// restart from the beginning. The decisions stay valid unless another process wrote in between.
    pub(crate) fn restart(&mut self) -> rusqlite::Result<()> {
        if self.books.pending.wrote {
            return Ok(());
        }
        self.batch_writer.restart()
    }

    /// Writes the decisions, commits them and releases the writer lock. Returns whether there was anything to
    /// write.
    pub(crate) fn commit(&mut self) -> rusqlite::Result<bool> {
        self.books
            .take_pending(&mut self.batch_writer.pending_write);
        let wrote = self.batch_writer.write_and_commit()?;
        self.batch_writer.writer_lock.release();
        Ok(wrote)
    }

    /// Rolls the transaction back. Returns its closes, which must be booked again.
    pub(crate) fn roll_back(&mut self) -> Vec<Close> {
        self.batch_writer.roll_back();
        let FailedBatch {
            closings,
            lost,
            lost_extensions,
        } = self.books.roll_back(&mut self.batch_writer.pending_write);
        self.lost.extend(lost);
        self.lost_extensions.extend(lost_extensions);
        closings
    }

    /// Reopens the hold of a close if the hold was lost with a failed transaction although the call was answered. A
    /// closed hold stays closed, because a commit that was reported as failed may have succeeded.
    pub(crate) fn reopen_lost(&mut self, closing: &Close) -> rusqlite::Result<()> {
        let id = closing.hold;
        let Some(hold) = self.lost.get(&id) else {
            return Ok(());
        };
        let charged = closing.charge().is_some() && closing.if_lost == IfLost::Charge;
        if charged && !self.books.holds.contains_key(&id) && !self.is_closed(id)? {
            let hold = hold.clone();
            self.load_key(hold.key)?;
            if !self.books.reopen(id, &hold, closing.now) {
                // The hold stays in `lost`, so its close is retried.
                tracing::error!(hold = %id, "a lost hold cannot be opened again");
                return Err(rusqlite::Error::IntegralValueOutOfRange(
                    0,
                    hold.held.hold.get(),
                ));
            }
        }
        self.lost.remove(&id);
        Ok(())
    }

    fn is_closed(&self, id: HoldId) -> rusqlite::Result<bool> {
        let closed = "SELECT EXISTS (SELECT 1 FROM entries WHERE closes = ?1)";
        let mut closed = self.connection.prepare_cached(closed)?;
        closed.query_row([id.get()], |row| row.get(0))
    }

    pub(crate) fn is_in_transaction(&self) -> bool {
        self.batch_writer.is_in_transaction()
    }

    /// Counts the open holds in the table, because the count is uncertain after a failure.
    pub(crate) fn recount(&mut self) -> rusqlite::Result<()> {
        let count: i64 = self
            .connection
            .query_row("SELECT count(*) FROM holds", [], |row| row.get(0))?;
        self.books.open_holds = u64::try_from(count).unwrap_or(0);
        Ok(())
    }

    /// Loads the rows of a key and its wallet, unless they are cached.
    pub(crate) fn load_key(&mut self, key: KeyId) -> rusqlite::Result<()> {
        if self.books.keys.get_mut(key).is_none() {
            let found = self
                .batch_writer
                .sql
                .key
                .query_row([key], book_key)
                .optional()?;
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

    /// Loads an open hold with its key and wallet, unless they are cached.
    pub(crate) fn load_hold(&mut self, id: HoldId) -> rusqlite::Result<()> {
        let key = match self.books.holds.entry(id) {
            Entry::Occupied(hold) => hold.get().key,
            Entry::Vacant(place) => {
                // A hold that was closed in this batch still has its row in the table.
                if self.books.pending.closed.contains(&id) {
                    return Ok(());
                }
                let found = self
                    .batch_writer
                    .sql
                    .hold
                    .query_row([id.get()], open_hold)
                    .optional()?;
                let Some(hold) = found else {
                    self.lost_extensions.remove(&id);
                    return Ok(());
                };
                place.insert(hold).key
            }
        };
        self.load_key(key)?;
        if let Some(booked_and_held) = self.lost_extensions.remove(&id) {
            self.books.regrow(id, booked_and_held);
        }
        Ok(())
    }

    /// Loads a wallet by its row number, unless it is cached.
    pub(crate) fn load_wallet(&mut self, n: i64) -> rusqlite::Result<()> {
        if self.books.wallets.get_mut(n).is_none() {
            let row = self.batch_writer.sql.wallet.query_row([n], book_wallet)?;
            self.books.wallets.insert(n, row);
        }
        Ok(())
    }
}
