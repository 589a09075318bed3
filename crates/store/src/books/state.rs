//! The rows in memory, and the pending changes to them.

use std::sync::Arc;

use ledger::{Key, Micro, RateClock, UnixMs, Wallet};

use super::pending::{Pending, Posting};
use super::rows::{BookKey, BookWallet, OpenHold};
use crate::cache::{GenerationalCache, IdMap};
use crate::error::StoreError;
use crate::records::ids::{Epoch, HoldId, KeyId};
use crate::stats::Counters;

/// The rows in memory. Before a command runs, the caller loads the rows that the command names. A row that is still
/// missing when the command runs does not exist.
#[derive(Debug)]
pub(crate) struct Books {
    pub(crate) wallets: GenerationalCache<i64, BookWallet>,
    pub(crate) keys: GenerationalCache<KeyId, BookKey>,
    pub(crate) holds: IdMap<HoldId, OpenHold>,
    pub(crate) pending: Pending,
    pub(crate) last_hold: HoldId,
    /// The difference between two consecutive hold ids.
    pub(crate) hold_step: i64,
    pub(crate) open_holds: u64,
    pub(crate) debt_limit: Micro,
    pub(crate) counters: Arc<Counters>,
    pub(crate) rate_clock: RateClock,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Limits {
    /// The maximum number of wallet rows, and of key rows, to cache.
    pub(crate) cached_rows_max: usize,
    /// How far below its credit line open calls may take a wallet.
    pub(crate) debt_limit: Micro,
}

/// The writer keeps these empty books while it shares its own books with the callers' threads.
impl Default for Books {
    fn default() -> Self {
        Self::new(Epoch::new(0), Limits::default(), Arc::default())
    }
}

impl Books {
    pub(crate) fn new(epoch: Epoch, limits: Limits, counters: Arc<Counters>) -> Self {
        Self {
            wallets: GenerationalCache::new(limits.cached_rows_max),
            keys: GenerationalCache::new(limits.cached_rows_max),
            holds: IdMap::default(),
            pending: Pending::default(),
            last_hold: HoldId::first_of(epoch),
            hold_step: 1,
            open_holds: 0,
            debt_limit: limits.debt_limit,
            counters,
            rate_clock: RateClock::default(),
        }
    }

    /// Drops every row, because another process may have changed them.
    pub(crate) fn forget(&mut self) {
        self.wallets.clear();
        self.keys.clear();
        self.holds.clear();
    }

    /// Adds the pending changes to the counters after their commit.
    pub(crate) fn count_committed(&self) {
        self.pending.count(&self.counters);
    }

    pub(crate) fn rows_of(&mut self, key: KeyId) -> Option<Rows<'_>> {
        let key_row = self.keys.get_mut(key)?;
        let wallet = self.wallets.get_mut(key_row.wallet)?;
        Some(Rows {
            id: key,
            wallet,
            key: key_row,
            pending: &mut self.pending,
            holds: &mut self.holds,
        })
    }

    /// The rows of a key and its wallet, for a decision at `now`.
    pub(crate) fn rows_at(&mut self, key: KeyId, now: UnixMs) -> Option<Rows<'_>> {
        let rows = self.rows_of(key)?;
        rows.key.begin_period(now, rows.wallet.entries);
        Some(rows)
    }

    /// Whether the rows of a key and its wallet are in memory.
    pub(crate) fn knows(&self, key: KeyId) -> bool {
        let key = self.keys.peek(key);
        key.is_some_and(|key| self.wallets.peek(key.wallet).is_some())
    }

    /// Whether an open hold and its rows are in memory.
    pub(crate) fn knows_hold(&self, hold: HoldId) -> bool {
        let hold = self.holds.get(&hold);
        hold.is_some_and(|hold| self.knows(hold.key))
    }

    pub(crate) fn balance(&mut self, key: KeyId, now: UnixMs) -> Result<(Wallet, Key), StoreError> {
        match self.rows_at(key, now) {
            Some(rows) => Ok((rows.wallet.wallet, rows.key.key)),
            None => Err(StoreError::NotFound {
                what: "key",
                id: key.to_string(),
            }),
        }
    }
}

/// A key and its wallet, borrowed for a decision.
pub(crate) struct Rows<'a> {
    id: KeyId,
    pub(crate) wallet: &'a mut BookWallet,
    pub(crate) key: &'a mut BookKey,
    pub(crate) pending: &'a mut Pending,
    pub(crate) holds: &'a mut IdMap<HoldId, OpenHold>,
}

impl Rows<'_> {
    /// Adds an open hold, whose amounts are already reserved.
    pub(crate) fn open(&mut self, id: HoldId, hold: OpenHold) {
        self.wallet.holds_opened = self.wallet.holds_opened.saturating_add(1);
        self.touch();
        self.pending.opened.push(id);
        self.pending.unfinished += 1;
        self.holds.insert(id, hold);
    }

    /// Marks both rows to be written with the batch.
    pub(crate) fn touch(&mut self) {
        self.wallet.touch(self.key.wallet, self.pending);
        self.touch_key();
    }

    pub(crate) fn post(&mut self, posting: Posting) {
        self.wallet.post(posting, self.pending);
    }

    pub(crate) fn touch_key(&mut self) {
        if !self.key.dirty {
            self.key.dirty = true;
            self.pending.keys.push(self.id);
        }
    }
}
