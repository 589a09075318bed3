//! Calls in the ledger: admitted, extended, closed.

use ledger::{Ask, Delta, Key, Micro, Rates, Refusal, UnixMs};

use super::ledger::Ledger;
use super::pending::{Posting, What};
use super::rows::{HoldRow, OpenHold};
use crate::call::{Admit, Basis, Extend};
use crate::command::{Closing, Ending};
use crate::entries::EntryKind;
use crate::error::AdmitError;
use crate::ids::{HoldId, KeyId};

/// What became of a close.
#[derive(Debug)]
pub(super) enum Closed {
    /// It is booked.
    Booked,
    /// The hold had been closed before, or was never durable.
    Late,
}

/// A close that could not be booked, and must be tried again.
#[derive(Debug)]
pub(super) struct Unbooked {
    pub(super) closing: Closing,
    pub(super) error: Unbookable,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Unbookable {
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
    /// The rows contradict the hold.
    #[error("the stored amounts do not contain the hold")]
    Amounts,
}

impl Ledger<'_> {
    /// Decides on a call. A refusal has changed nothing.
    pub(super) fn admit(
        &mut self,
        admit: Admit,
    ) -> rusqlite::Result<Result<(HoldId, Rates), AdmitError>> {
        // Keys are never deleted and never change hands, so this one never was.
        let unknown = AdmitError::Refused {
            refusal: Refusal::KeyDisabled,
            rates: Rates::default(),
        };
        let id = self.last_hold.next();
        let Some(mut rows) = self.rows_of(admit.key)? else {
            return Ok(Err(unknown));
        };
        if rows.key.wallet_id != admit.wallet {
            return Ok(Err(unknown));
        }
        let rates = match ledger::admit(
            &mut rows.wallet.wallet,
            &mut rows.key.key,
            &admit.ask,
            admit.now,
        ) {
            Ok(rates) => rates,
            Err(refusal) => return Ok(Err(refused(refusal, &rows.key.key, admit.now))),
        };
        rows.wallet.holds_opened = rows.wallet.holds_opened.saturating_add(1);
        rows.touch();
        rows.pending.opened.push(id);
        let hold = OpenHold {
            wallet: rows.key.wallet,
            key: admit.key,
            held: admit.ask,
            request_id: admit.request_id,
            opened_at: admit.now,
            row: HoldRow::None,
        };
        rows.holds.insert(id, hold);
        self.last_hold = id;
        self.open_holds = self.open_holds.saturating_add(1);
        Ok(Ok((id, rates)))
    }

    /// Grows an open hold; `None` when there is no such hold.
    pub(super) fn extend(
        &mut self,
        extend: &Extend,
    ) -> rusqlite::Result<Option<Result<(), AdmitError>>> {
        let Some((key, held)) = self.held(extend.hold)? else {
            return Ok(None);
        };
        let Some(mut rows) = self.rows_of(key)? else {
            return Ok(None);
        };
        let Some(grown) = held.extended(&extend.more) else {
            let refusal = Refusal::InsufficientQuota;
            return Ok(Some(Err(refused(refusal, &rows.key.key, extend.now))));
        };
        if let Err(refusal) = ledger::extend(
            &mut rows.wallet.wallet,
            &mut rows.key.key,
            &extend.more,
            extend.now,
        ) {
            return Ok(Some(Err(refused(refusal, &rows.key.key, extend.now))));
        }
        rows.touch();
        self.set_held(extend.hold, grown);
        Ok(Some(Ok(())))
    }

    /// The hold stays open but no longer counts against its key's concurrency.
    pub(super) fn stop_counting(&mut self, id: HoldId) -> rusqlite::Result<()> {
        let Some((key, mut held)) = self.held(id)? else {
            return Ok(());
        };
        let Some(mut rows) = self.rows_of(key)? else {
            return Ok(());
        };
        if ledger::stop_counting(&mut rows.key.key, &mut held).is_ok() {
            rows.touch_key();
            self.set_held(id, held);
        }
        Ok(())
    }

    /// Ends a hold: the first close is booked, any other changes nothing (reliability W8).
    pub(super) fn close(&mut self, closing: Closing) -> Result<Closed, Box<Unbooked>> {
        match self.book(&closing) {
            Ok(Some(booked)) => {
                self.post(closing, booked);
                Ok(Closed::Booked)
            }
            Ok(None) => Ok(Closed::Late),
            Err(error) => Err(Box::new(Unbooked { closing, error })),
        }
    }

    /// Moves the amounts of a close; nothing when there is no such open hold. An error has
    /// changed nothing.
    fn book(&mut self, closing: &Closing) -> Result<Option<Booked>, Unbookable> {
        let Some((key, ask)) = self.held(closing.hold)? else {
            return Ok(None);
        };
        let Some(mut rows) = self.rows_of(key)? else {
            return Err(Unbookable::Amounts);
        };
        let (wallet, key) = (&mut rows.wallet.wallet, &mut rows.key.key);
        let booking =
            book(wallet, key, &ask, &closing.end, closing.now).map_err(|_| Unbookable::Amounts)?;
        rows.touch();
        let Some(hold) = rows.holds.remove(&closing.hold) else {
            return Ok(None);
        };
        if hold.row != HoldRow::None {
            rows.pending.closed.push(closing.hold);
        }
        let seq = rows.wallet.next_entry();
        let key = rows.key.n;
        Ok(Some(Booked {
            booking,
            hold,
            key,
            seq,
        }))
    }

    fn post(&mut self, closing: Closing, booked: Booked) {
        let Booked {
            booking,
            hold,
            key,
            seq,
        } = booked;
        let Booking {
            kind,
            charge,
            delta,
            note,
        } = booking;
        let free = matches!(&closing.end, Ending::Settled { meter, .. }
            if charge == Micro::ZERO && &**meter != EMPTY_METER);
        self.counters.zero_charges.add(u64::from(free));
        self.counters
            .above_hold
            .add(u64::from(charge > hold.held.hold));
        self.counters
            .abandoned
            .add(u64::from(kind == EntryKind::Abandoned));
        self.open_holds = self.open_holds.saturating_sub(1);
        let wallet = hold.wallet;
        let what = What::Close { closing, hold, key };
        self.pending.postings.push(Posting {
            wallet,
            seq,
            kind,
            charge,
            delta,
            note,
            what,
        });
    }

    fn held(&mut self, id: HoldId) -> rusqlite::Result<Option<(KeyId, Ask)>> {
        if !self.load_hold(id)? {
            return Ok(None);
        }
        Ok(self.holds.get(&id).map(|hold| (hold.key, hold.held)))
    }

    fn set_held(&mut self, id: HoldId, held: Ask) {
        if let Some(hold) = self.holds.get_mut(&id) {
            hold.held = held;
            if hold.row == HoldRow::Same {
                hold.row = HoldRow::Stale;
                self.pending.changed.push(id);
            }
        }
    }
}

/// The ledger's no; nothing has changed, so these are the rates before the call too.
fn refused(refusal: Refusal, key: &Key, now: UnixMs) -> AdmitError {
    AdmitError::Refused {
        refusal,
        rates: Rates::of(key, now),
    }
}

/// What a meter without any usage looks like.
const EMPTY_METER: &str = "{}";

/// A close whose amounts have moved.
struct Booked {
    booking: Booking,
    hold: OpenHold,
    /// The key, and the number of the wallet's entry.
    key: i64,
    seq: i64,
}

struct Booking {
    kind: EntryKind,
    charge: Micro,
    delta: Delta,
    note: Option<Box<str>>,
}

fn book(
    wallet: &mut ledger::Wallet,
    key: &mut ledger::Key,
    held: &Ask,
    end: &Ending,
    now: UnixMs,
) -> Result<Booking, ledger::Overflow> {
    let (kind, note) = match end {
        Ending::Released => (EntryKind::Released, None),
        Ending::Abandoned => (EntryKind::Abandoned, None),
        Ending::Settled {
            charge,
            basis,
            tokens,
            ..
        } => {
            // Whoever closes may not know yet that the hold has grown, or that it has not: only
            // here is its size certain.
            let charge = match basis {
                Basis::Reported => *charge,
                Basis::Counted => (*charge).min(held.hold),
            };
            match ledger::settle(wallet, key, held, charge, *tokens, now) {
                Ok(delta) => {
                    return Ok(Booking {
                        kind: EntryKind::Settled,
                        charge,
                        delta,
                        note: None,
                    });
                }
                Err(error) => {
                    // A charge outside the range of money cannot be booked, and a hold must not stay
                    // open for it: the entry says what was asked for.
                    tracing::error!(%error, charge = charge.get(), "a settlement could not be booked");
                    (
                        EntryKind::Abandoned,
                        Some(format!("charge of {} micro not bookable", charge.get()).into()),
                    )
                }
            }
        }
    };
    ledger::release(wallet, key, held, now)?;
    Ok(Booking {
        kind,
        charge: Micro::ZERO,
        delta: Delta::default(),
        note,
    })
}
