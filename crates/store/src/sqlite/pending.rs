//! What a batch has decided and not yet written.
//!
//! Decisions change rows in memory; each changed row is written once, at the end of the batch,
//! however many commands touched it.

use ledger::{Delta, Micro, UnixMs};
use rusqlite::params;

use super::rows::OpenHold;
use super::statements::Statements;
use crate::command::{Closing, Ending};
use crate::entries::EntryKind;
use crate::ids::{HoldId, KeyId};

#[derive(Debug, Default)]
pub(super) struct Pending {
    pub(super) wallets: Vec<i64>,
    pub(super) keys: Vec<KeyId>,
    /// Holds opened here; those that were closed here too have no row at all.
    pub(super) opened: Vec<HoldId>,
    /// Holds of earlier batches that changed.
    pub(super) changed: Vec<HoldId>,
    /// Holds of earlier batches that were closed.
    pub(super) closed: Vec<HoldId>,
    pub(super) postings: Vec<Posting>,
    /// Something was written at once, by an administrative change.
    pub(super) wrote: bool,
}

impl Pending {
    pub(super) fn is_empty(&self) -> bool {
        self.wallets.is_empty() && self.keys.is_empty() && self.postings.is_empty() && !self.wrote
    }

    /// Forgets everything, and gives back the closes, which must not be forgotten.
    pub(super) fn take_closings(&mut self) -> Vec<Closing> {
        let postings = std::mem::take(self).postings;
        postings
            .into_iter()
            .filter_map(|posting| match posting.what {
                What::Close { closing, .. } => Some(closing),
                What::Credit { .. } => None,
            })
            .collect()
    }

    /// Forgets everything and keeps the room for the next batch.
    pub(super) fn clear(&mut self) {
        self.wallets.clear();
        self.keys.clear();
        self.opened.clear();
        self.changed.clear();
        self.closed.clear();
        self.postings.clear();
        self.wrote = false;
    }
}

/// An entry to be written.
#[derive(Debug)]
pub(super) struct Posting {
    pub(super) wallet: i64,
    pub(super) seq: i64,
    pub(super) kind: EntryKind,
    pub(super) charge: Micro,
    pub(super) delta: Delta,
    pub(super) note: Option<Box<str>>,
    pub(super) what: What,
}

#[derive(Debug)]
pub(super) enum What {
    Close {
        closing: Closing,
        hold: OpenHold,
        key: i64,
    },
    Credit {
        at: UnixMs,
    },
}

impl Posting {
    pub(super) fn write(&self, sql: &mut Statements<'_>) -> rusqlite::Result<()> {
        let (wallet, seq, kind, charge) =
            (self.wallet, self.seq, self.kind.as_str(), self.charge.get());
        let Delta {
            balance,
            gift_balance,
            credit_used,
        } = self.delta;
        match &self.what {
            What::Close { closing, hold, key } => {
                let (meter, price_version, basis) = match &closing.end {
                    Ending::Settled {
                        meter,
                        price_version,
                        basis,
                        ..
                    } => (Some(meter), Some(price_version.get()), Some(basis.as_str())),
                    Ending::Released | Ending::Abandoned => (None, None, None),
                };
                sql.post.execute(params![
                    wallet,
                    seq,
                    kind,
                    closing.now.get(),
                    closing.hold.get(),
                    key,
                    hold.held.hold.get(),
                    charge,
                    balance,
                    gift_balance,
                    credit_used,
                    hold.opened_at.get(),
                    hold.request_id,
                    meter,
                    price_version,
                    basis,
                    self.note,
                ])?;
            }
            What::Credit { at } => {
                let none = rusqlite::types::Null;
                sql.post.execute(params![
                    wallet,
                    seq,
                    kind,
                    at.get(),
                    none,
                    none,
                    none,
                    charge,
                    balance,
                    gift_balance,
                    credit_used,
                    none,
                    none,
                    none,
                    none,
                    none,
                    self.note,
                ])?;
            }
        }
        Ok(())
    }
}
