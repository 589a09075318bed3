//! The decisions of a batch, moved out of the books to be written, so that the next batch can use the books meanwhile.

use ledger::{Key, UnixMs};

use super::pending::Pending;
use super::rows::{BookWallet, HoldRow, OpenHold};
use super::state::Books;
use crate::records::ids::HoldId;

/// If memory contains more open holds than this, all of them are dropped. A dropped hold is read from the table when it
/// is needed.
const CACHED_HOLDS_MAX: usize = 65_536;

#[derive(Debug, Default)]
pub(crate) struct PendingWrite {
    /// The new values of changed wallets, with their row numbers.
    pub(crate) wallets: Vec<(i64, BookWallet)>,
    /// The new values of changed keys, with their row numbers and the time of the last admission.
    pub(crate) keys: Vec<(i64, Key, Option<UnixMs>)>,
    /// New holds, with the row number of their key.
    pub(crate) opened: Vec<(HoldId, Option<i64>, OpenHold)>,
    pub(crate) changed: Vec<(HoldId, OpenHold)>,
    pub(crate) changes: Pending,
}

impl PendingWrite {
    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Clears everything and keeps the allocations for the next batch.
    pub(crate) fn clear(&mut self) {
        self.wallets.clear();
        self.keys.clear();
        self.opened.clear();
        self.changed.clear();
        self.changes.clear();
    }
}

impl Books {
    /// Moves the pending changes to `pending_write`. From now on every row in memory counts as written. If the write
    /// fails, the caller must [forget](Self::forget) all rows.
    pub(crate) fn take_pending(&mut self, pending_write: &mut PendingWrite) {
        for n in &self.pending.wallets {
            if let Some(row) = self.wallets.get_mut(*n) {
                row.dirty = false;
                pending_write.wallets.push((*n, *row));
            }
        }
        for id in &self.pending.keys {
            if let Some(row) = self.keys.get_mut(*id) {
                row.dirty = false;
                pending_write.keys.push((row.n, row.key, row.last_used_at));
            }
        }
        for id in &self.pending.opened {
            // A hold that was closed in the same batch is not in the map any more.
            if let Some(hold) = self.holds.get_mut(id) {
                hold.row = HoldRow::Same;
                let key = self.keys.get_mut(hold.key).map(|key| key.n);
                pending_write.opened.push((*id, key, hold.clone()));
            }
        }
        for id in &self.pending.changed {
            if let Some(hold) = self.holds.get_mut(id) {
                hold.row = HoldRow::Same;
                pending_write.changed.push((*id, hold.clone()));
            }
        }
        std::mem::swap(&mut self.pending, &mut pending_write.changes);
        self.wallets.age();
        self.keys.age();
        if self.holds.len() > CACHED_HOLDS_MAX {
            self.holds.clear();
        }
    }
}
