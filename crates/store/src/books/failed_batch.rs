//! Rolls back a failed batch, and collects its closes and holds, which must be booked again.

use ledger::Micro;

use super::pending::Source;
use super::pending_write::PendingWrite;
use super::rows::OpenHold;
use super::state::Books;
use crate::cache::IdMap;
use crate::records::call::{Close, End, IfLost};
use crate::records::ids::HoldId;

#[derive(Debug, Default)]
pub(crate) struct FailedBatch {
    /// Closes to book again, in their original order.
    pub(crate) closings: Vec<Close>,
    /// Holds that were never stored. Their calls continue, and may be answered and charged.
    pub(crate) lost: IdMap<HoldId, OpenHold>,
    /// The amounts booked and held by stored holds whose extension was lost. Their calls know of the extension.
    pub(crate) lost_extensions: IdMap<HoldId, Micro>,
}

impl Books {
    /// Rolls back all decisions since the last commit: those in `pending_write`, which could not be written, and all
    /// later ones. Drops all rows.
    pub(crate) fn roll_back(&mut self, pending_write: &mut PendingWrite) -> FailedBatch {
        let mut lost = IdMap::default();
        lost.extend(
            pending_write
                .opened
                .drain(..)
                .map(|(id, _, hold)| (id, hold)),
        );
        let mut pending = std::mem::take(&mut self.pending);
        lost.extend(pending.opened.iter().filter_map(|id| {
            let hold = self.holds.get(id)?;
            Some((*id, hold.clone()))
        }));
        // A hold may have changed after it was copied to `pending_write`.
        for (id, hold) in &mut lost {
            if let Some(latest) = self.holds.get(id) {
                hold.clone_from(latest);
            }
        }
        let mut lost_extensions: IdMap<HoldId, Micro> = IdMap::default();
        lost_extensions.extend(
            pending_write
                .changed
                .iter()
                .map(|(id, hold)| (*id, hold.booked_and_held())),
        );
        lost_extensions.extend(pending.changed.iter().filter_map(|id| {
            let hold = self.holds.get(id)?;
            Some((*id, hold.booked_and_held()))
        }));
        let mut closings = Vec::new();
        let changes = &mut pending_write.changes;
        for posting in changes.postings.drain(..).chain(pending.postings) {
            // A lost step needs no repetition: the next step of the session, or its close, includes it.
            let Source::Close {
                mut closing, hold, ..
            } = posting.source
            else {
                continue;
            };
            if !hold.row.is_stored() || lost.contains_key(&closing.hold) {
                lost.insert(closing.hold, hold);
                // The caller is told that the call failed. If the hold exists after all, it is released.
                if closing.if_lost == IfLost::NoCharge {
                    closing.end = End::Released;
                }
            } else {
                lost_extensions.insert(closing.hold, hold.booked_and_held());
            }
            closings.push(closing);
        }
        changes.inseparable.append(&mut pending.inseparable);
        let alone = |id: &HoldId| !changes.inseparable.contains(id);
        lost.retain(|id, _| alone(id));
        lost_extensions.retain(|id, _| alone(id) && !lost.contains_key(id));
        closings.retain(|closing| alone(&closing.hold));
        pending_write.clear();
        self.forget();
        FailedBatch {
            closings,
            lost,
            lost_extensions,
        }
    }
}
