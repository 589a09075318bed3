//! Collects the changes that a batch has decided but not yet written.
//!
//! Decisions change rows in memory. A row that several commands changed is written once, at the end of the batch.

use ledger::{Delta, Micro, UnixMs};

use super::rows::{BookWallet, OpenHold};
use crate::chain::ReferencedValues;
use crate::records::balance_point::{BalancePoint, Balances, keeps_point};
use crate::records::call::{Basis, Close, End, SessionStep};
use crate::records::columns::EntryColumns;
use crate::records::cost::Cost;
use crate::records::entries::EntryKind;
use crate::records::ids::{HoldId, KeyId, PriceVersion, RequestId};
use crate::records::meter::TokenCounts;
use crate::records::settled::EntryCharge;
use crate::stats::Counters;

#[derive(Debug, Default)]
pub(crate) struct Pending {
    pub(crate) wallets: Vec<i64>,
    pub(crate) keys: Vec<KeyId>,
    /// Holds opened in this batch. A hold that the batch also closes gets no row.
    pub(crate) opened: Vec<HoldId>,
    /// The number of holds that were opened in this batch and are still open.
    pub(crate) unfinished: usize,
    /// Holds of earlier batches that changed.
    pub(crate) changed: Vec<HoldId>,
    /// Holds of earlier batches that were closed.
    pub(crate) closed: Vec<HoldId>,
    pub(crate) postings: Vec<Posting>,
    /// Balances to store, each with the number of its wallet.
    pub(crate) points: Vec<(i64, BalancePoint)>,
    pub(crate) has_manual: bool,
    /// Holds that are opened or closed together with the row of a task. If the batch fails, they are not booked again,
    /// because the caller repeats the whole step.
    pub(crate) inseparable: Vec<HoldId>,
    /// Whether an administrative change has already written to the database.
    pub(crate) wrote: bool,
}

impl Pending {
    pub(crate) fn is_empty(&self) -> bool {
        self.wallets.is_empty() && self.keys.is_empty() && self.postings.is_empty() && !self.wrote
    }

    /// Adds these changes to the counters. Called after the commit, because changes that are rolled back must not be
    /// counted.
    pub(crate) fn count(&self, counters: &Counters) {
        if self.postings.is_empty() {
            return;
        }
        let (mut free, mut above, mut abandoned, mut unbookable) = (0, 0, 0, 0);
        for posting in &self.postings {
            if let Source::Close { closing, hold, .. } = &posting.source {
                let used = matches!(&closing.end, End::Settled { meter, .. } if !meter.is_empty());
                let paid = posting.charge != Micro::ZERO || hold.booked != Micro::ZERO;
                free += u64::from(used && !paid);
                above += u64::from(posting.charge > hold.held.hold);
                let is_abandoned = posting.kind == EntryKind::Abandoned;
                let was_settled = matches!(closing.end, End::Settled { .. });
                abandoned += u64::from(is_abandoned);
                unbookable += u64::from(is_abandoned && was_settled);
            }
        }
        counters.zero_charges.add(free);
        counters.above_hold.add(above);
        counters.abandoned.add(abandoned);
        counters.unbookable.add(unbookable);
        counters
            .settled
            .add(self.postings.iter().filter_map(Posting::charged));
    }

    /// Clears everything and keeps the allocations for the next batch.
    pub(crate) fn clear(&mut self) {
        self.wallets.clear();
        self.keys.clear();
        self.opened.clear();
        self.unfinished = 0;
        self.changed.clear();
        self.closed.clear();
        self.postings.clear();
        self.points.clear();
        self.has_manual = false;
        self.inseparable.clear();
        self.wrote = false;
    }
}

impl BookWallet {
    /// Marks the row with the number `n` as changed, so that it is written with the batch.
    pub(crate) fn touch(&mut self, n: i64, pending: &mut Pending) {
        if !self.dirty {
            self.dirty = true;
            pending.wallets.push(n);
        }
    }

    /// Assigns an entry its number and its place in the wallet's chain, and adds it to the batch.
    pub(crate) fn post(&mut self, mut posting: Posting, pending: &mut Pending) {
        let at = posting.at();
        if keeps_point(self.entries, self.posted_at, at) {
            let point = BalancePoint {
                seq: self.entries,
                posted_at: self.posted_at,
                balances: Balances::of(&self.wallet).before(&posting.delta),
                charged: self.charged,
            };
            pending.points.push((posting.wallet, point));
        }
        self.posted_at = self.posted_at.max(at);
        self.charged = Micro::new(self.charged.get().saturating_add(posting.charge.get()));
        self.entries = self.entries.saturating_add(1);
        posting.seq = self.entries;
        let named = ReferencedValues {
            key: posting.key(),
            card: posting.price_version().map(PriceVersion::digest),
            cost_card: posting.cost().map(|cost| cost.version.digest()),
        };
        self.head = self.head.after(&posting.columns(), named);
        pending.postings.push(posting);
    }
}

/// An entry to be written.
#[derive(Debug)]
pub(crate) struct Posting {
    pub(crate) wallet: i64,
    /// Set when the entry is posted.
    pub(crate) seq: i64,
    pub(crate) kind: EntryKind,
    pub(crate) charge: Micro,
    pub(crate) delta: Delta,
    pub(crate) note: Option<Box<str>>,
    pub(crate) source: Source,
}

#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "most entries are closes; a box would cost each call an allocation"
)]
pub(crate) enum Source {
    Close {
        closing: Close,
        hold: OpenHold,
        key: i64,
    },
    /// A step of a session.
    Part {
        stepping: Box<SessionStep>,
        call: SteppedHold,
    },
    /// A manual entry.
    Manual { at: UnixMs, origin: Box<Origin> },
}

/// The columns that only manual entries have.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origin {
    /// Unique among the wallet's entries.
    pub(crate) reference: Option<Box<str>>,
    /// The number of the refunded top-up.
    pub(crate) refund_of: Option<i64>,
    /// The name of the person or program that made the entry.
    pub(crate) actor: Option<Box<str>>,
}

/// The hold of a session step, as it was before the step.
#[derive(Debug)]
pub(crate) struct SteppedHold {
    pub(crate) key: i64,
    pub(crate) key_id: KeyId,
    pub(crate) held: Micro,
    pub(crate) booked: Micro,
    pub(crate) cost_booked: Micro,
    pub(crate) opened_at: UnixMs,
    pub(crate) request_id: RequestId,
}

impl Posting {
    /// The hold whose row this entry deletes. `None` if the entry closes no hold, or if the hold has no row.
    pub(crate) fn removes(&self) -> Option<HoldId> {
        match &self.source {
            Source::Close { closing, hold, .. } if hold.row.is_stored() => Some(closing.hold),
            Source::Close { .. } | Source::Part { .. } | Source::Manual { .. } => None,
        }
    }

    fn at(&self) -> UnixMs {
        match &self.source {
            Source::Close { closing, .. } => closing.now,
            Source::Part { stepping, .. } => stepping.now,
            Source::Manual { at, .. } => *at,
        }
    }

    pub(super) fn key(&self) -> Option<KeyId> {
        match &self.source {
            Source::Close { hold, .. } => Some(hold.key),
            Source::Part { call, .. } => Some(call.key_id),
            Source::Manual { .. } => None,
        }
    }

    pub(crate) fn price_version(&self) -> Option<&PriceVersion> {
        match &self.source {
            Source::Part { stepping, .. } => Some(&stepping.price_version),
            Source::Close { closing, .. } => match &closing.end {
                End::Settled { price_version, .. } => Some(price_version),
                End::Released | End::Abandoned => None,
            },
            Source::Manual { .. } => None,
        }
    }

    /// The upstream cost of the call or session, if it is known.
    fn cost(&self) -> Option<&Cost> {
        match &self.source {
            Source::Part { stepping, .. } => stepping.cost.as_deref(),
            Source::Close { closing, .. } => match &closing.end {
                End::Settled { cost, .. } => cost.as_deref(),
                End::Released | End::Abandoned => None,
            },
            Source::Manual { .. } => None,
        }
    }

    /// The amounts that the entry adds to the sums of its price version. `None` for an entry without prices.
    fn charged(&self) -> Option<EntryCharge> {
        Some(EntryCharge {
            price_version: self.price_version()?.get(),
            charge: self.charge,
            // The usage of a session is counted once, with its last entry.
            settled: (self.kind == EntryKind::Settled).then(|| self.tokens()),
        })
    }

    /// The tokens of the call that the entry settles.
    fn tokens(&self) -> TokenCounts {
        match &self.source {
            Source::Close { closing, .. } => match &closing.end {
                End::Settled { meter, .. } => meter.tokens(),
                End::Released | End::Abandoned => TokenCounts::default(),
            },
            Source::Part { .. } | Source::Manual { .. } => TokenCounts::default(),
        }
    }

    pub(crate) fn columns(&self) -> EntryColumns<'_> {
        let mut columns = EntryColumns {
            wallet: self.wallet,
            seq: self.seq,
            kind: self.kind.as_str(),
            charge: self.charge.get(),
            delta: self.delta,
            note: self.note.as_deref(),
            ..EntryColumns::default()
        };
        match &self.source {
            Source::Manual { at, origin } => {
                columns.at = at.get();
                columns.reference = origin.reference.as_deref();
                columns.refund_of = origin.refund_of;
                columns.actor = origin.actor.as_deref();
            }
            Source::Part { stepping, call } => {
                columns.at = stepping.now.get();
                columns.part_of = Some(stepping.hold.get());
                columns.key = Some(call.key);
                columns.held = Some(call.held.get());
                columns.booked = call.booked.get();
                columns.opened_at = Some(call.opened_at.get());
                columns.request_id = Some(&call.request_id);
                columns.meter = Some(stepping.meter.as_str());
                columns.price_version = Some(stepping.price_version.get());
                columns.basis = Some(Basis::Counted.as_str());
                columns.set_cost(self.cost(), call.cost_booked);
            }
            Source::Close { closing, hold, key } => {
                columns.at = closing.now.get();
                columns.closes = Some(closing.hold.get());
                columns.key = Some(*key);
                columns.held = Some(hold.held.hold.get());
                columns.booked = hold.booked.get();
                columns.opened_at = Some(hold.opened_at.get());
                columns.request_id = Some(&hold.request_id);
                if let End::Settled {
                    meter,
                    price_version,
                    basis,
                    ..
                } = &closing.end
                {
                    columns.meter = Some(meter.as_str());
                    columns.price_version = Some(price_version.get());
                    columns.basis = Some(basis.as_str());
                }
                columns.set_cost(self.cost(), hold.cost_booked);
            }
        }
        columns
    }
}
