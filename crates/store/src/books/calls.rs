//! Decides the admission, extension and close of calls on rows in memory.

use ledger::{AdmitTime, Delta, Key, Micro, Rates, Refusal, Reservation, UnixMs};

use super::pending::{Posting, Source, SteppedHold};
use super::rows::{HoldRow, OpenHold};
use super::state::Books;
use crate::error::AdmitError;
use crate::records::call::{Admit, Basis, Close, End, Extend, SessionStep};
use crate::records::entries::EntryKind;
use crate::records::ids::{HoldId, KeyId};

/// The note of an entry that books a charge whose hold was lost.
const LOST_HOLD: &str = "the hold was lost with a failed commit";

#[derive(Debug)]
pub(crate) enum Closed {
    Booked,
    /// The hold was already closed, or never became durable.
    Late,
    /// The rows of the hold are missing, or do not agree with it. Nothing was changed.
    Unbookable(Box<Close>),
}

impl Books {
    /// Decides on a call. A refusal changes nothing.
    pub(crate) fn admit(&mut self, admit: Admit) -> Result<(HoldId, Rates), AdmitError> {
        // Keys are never deleted and never move to another wallet, so this key has never existed.
        let unknown = AdmitError::Refused {
            refusal: Refusal::KeyDisabled,
            rates: Rates::default(),
        };
        let id = self.last_hold.next(self.hold_step);
        self.rate_clock.note(admit.now);
        let time = AdmitTime {
            wall: admit.now,
            rates: self.rate_clock.at(admit.now),
        };
        let debt_limit = self.debt_limit;
        let Some(mut rows) = self.rows_at(admit.key, admit.now) else {
            return Err(unknown);
        };
        if rows.key.wallet_id != admit.wallet {
            return Err(unknown);
        }
        let rates = ledger::admit(
            &mut rows.wallet.wallet,
            &mut rows.key.key,
            &admit.ask,
            debt_limit,
            time,
        )
        .map_err(|refusal| refused(refusal, &rows.key.key, time.rates))?;
        let hold = OpenHold {
            wallet: rows.key.wallet,
            key: admit.key,
            held: admit.ask,
            booked: Micro::ZERO,
            cost_booked: Micro::ZERO,
            request_id: admit.request_id,
            opened_at: admit.now,
            row: HoldRow::None,
        };
        rows.key.last_used_at = Some(admit.now);
        rows.open(id, hold);
        self.last_hold = id;
        self.open_holds = self.open_holds.saturating_add(1);
        Ok((id, rates))
    }

    /// Reopens a hold that was lost with a failed batch, so that the close of its call finds the hold. Limits are not
    /// checked, because the call was already admitted and answered. Returns whether the hold could be reopened.
    pub(crate) fn reopen(&mut self, id: HoldId, hold: &OpenHold, now: UnixMs) -> bool {
        let now = self.rate_clock.at(now);
        let Some(mut rows) = self.rows_of(hold.key) else {
            return false;
        };
        // The reopened hold includes the amounts that its steps had booked, because their entries are lost too.
        let ask = Reservation {
            hold: hold.booked_and_held(),
            ..hold.held
        };
        let (wallet, key) = (&mut rows.wallet.wallet, &mut rows.key.key);
        if ledger::reopen(wallet, key, &ask, now).is_err() {
            return false;
        }
        let hold = OpenHold {
            held: ask,
            booked: Micro::ZERO,
            cost_booked: Micro::ZERO,
            row: HoldRow::Lost,
            ..hold.clone()
        };
        rows.open(id, hold);
        self.open_holds = self.open_holds.saturating_add(1);
        true
    }

    /// Grows a stored hold back to the size that a failed batch granted to its call. Otherwise the smaller hold would
    /// limit the charge for counted usage. Limits are not checked.
    pub(crate) fn regrow(&mut self, id: HoldId, booked_and_held: Micro) {
        let Some(hold) = self.holds.get(&id) else {
            return;
        };
        let (key, ask) = (hold.key, hold.held);
        let amount = booked_and_held
            .checked_sub(hold.booked)
            .unwrap_or(Micro::ZERO);
        if amount <= ask.hold {
            return;
        }
        let Some(mut rows) = self.rows_of(key) else {
            return;
        };
        let (wallet, key) = (&mut rows.wallet.wallet, &mut rows.key.key);
        match ledger::regrow(wallet, key, &ask, amount) {
            Ok(grown) => {
                rows.touch();
                self.set_held(id, grown);
            }
            Err(error) => {
                tracing::error!(%error, hold = %id, "the lost growth of a hold could not be repeated");
            }
        }
    }

    /// Extends an open hold. `None` if there is no such hold.
    pub(crate) fn extend(&mut self, extend: &Extend) -> Option<Result<(), AdmitError>> {
        let (key, held) = self.held(extend.hold)?;
        let now = self.rate_clock.at(extend.now);
        let debt_limit = self.debt_limit;
        let mut rows = self.rows_at(key, extend.now)?;
        let grown = ledger::extend(
            &mut rows.wallet.wallet,
            &mut rows.key.key,
            &held,
            &extend.more,
            debt_limit,
            now,
        );
        let grown = match grown {
            Ok(grown) => grown,
            Err(refusal) => return Some(Err(refused(refusal, &rows.key.key, now))),
        };
        rows.touch();
        self.set_held(extend.hold, grown);
        Some(Ok(()))
    }

    /// Books a step of a session. Returns the amount that the hold covers since the beginning of the session, or `None`
    /// if there is no such hold.
    pub(crate) fn step(&mut self, stepping: Box<SessionStep>) -> Option<Result<Micro, AdmitError>> {
        let id = stepping.hold;
        let hold = self.holds.get(&id)?;
        let (key, ask, before, wallet) = (hold.key, hold.held, hold.booked, hold.wallet);
        let (opened_at, request_id) = (hold.opened_at, hold.request_id);
        let mut cost_booked = hold.cost_booked;
        let rates_at = self.rate_clock.at(stepping.now);
        let debt_limit = self.debt_limit;
        let mut rows = self.rows_at(key, stepping.now)?;
        let stepped = ledger::step(
            &mut rows.wallet.wallet,
            &mut rows.key.key,
            &ask,
            before,
            &stepping.step,
            debt_limit,
            stepping.now,
        );
        let stepped = match stepped {
            Ok(stepped) => stepped,
            Err(refusal) => return Some(Err(refused(refusal, &rows.key.key, rates_at))),
        };
        rows.touch();
        if stepped.charge > Micro::ZERO {
            let call = SteppedHold {
                key: rows.key.n,
                key_id: key,
                held: ask.hold,
                booked: before,
                cost_booked,
                opened_at,
                request_id,
            };
            if let Some(cost) = &stepping.cost {
                cost_booked = cost_booked.max(cost.amount);
            }
            rows.post(Posting {
                wallet,
                seq: 0,
                kind: EntryKind::Part,
                charge: stepped.charge,
                delta: stepped.delta,
                note: None,
                source: Source::Part { stepping, call },
            });
        }
        // The wallet covered both charges, so their sum does not overflow.
        let booked = before.checked_add(stepped.charge).unwrap_or(before);
        let ask = Reservation {
            hold: stepped.hold,
            ..ask
        };
        self.set_held(id, ask);
        if let Some(hold) = self.holds.get_mut(&id) {
            hold.booked = booked;
            hold.cost_booked = cost_booked;
        }
        Some(Ok(booked.checked_add(stepped.hold).unwrap_or(Micro::MAX)))
    }

    /// Stops counting the hold against its key's concurrency. The hold stays open.
    pub(crate) fn stop_counting(&mut self, id: HoldId) {
        let Some((key, mut held)) = self.held(id) else {
            return;
        };
        let Some(mut rows) = self.rows_of(key) else {
            return;
        };
        if ledger::stop_counting(&mut rows.key.key, &mut held).is_ok() {
            rows.touch_key();
            self.set_held(id, held);
        }
    }

    /// Ends a hold. The first close is booked; any later one changes nothing (W8).
    pub(crate) fn close(&mut self, closing: Close) -> Closed {
        let Some(hold) = self.holds.get(&closing.hold) else {
            return Closed::Late;
        };
        let (key, ask, before) = (hold.key, hold.held, hold.booked);
        let rates_at = self.rate_clock.at(closing.now);
        let Some(mut rows) = self.rows_at(key, closing.now) else {
            return Closed::Unbookable(Box::new(closing));
        };
        let (wallet, key) = (&mut rows.wallet.wallet, &mut rows.key.key);
        let Ok(booking) = book(wallet, key, &ask, before, &closing.end, rates_at) else {
            return Closed::Unbookable(Box::new(closing));
        };
        rows.touch();
        let Some(hold) = rows.holds.remove(&closing.hold) else {
            return Closed::Late;
        };
        if hold.row.is_stored() {
            rows.pending.closed.push(closing.hold);
        } else {
            rows.pending.unfinished = rows.pending.unfinished.saturating_sub(1);
        }
        let note = match hold.row {
            HoldRow::Lost => Some(booking.note.unwrap_or_else(|| LOST_HOLD.into())),
            HoldRow::None | HoldRow::Same | HoldRow::Stale => booking.note,
        };
        let key = rows.key.n;
        rows.post(Posting {
            wallet: hold.wallet,
            seq: 0,
            kind: booking.kind,
            charge: booking.charge,
            delta: booking.delta,
            note,
            source: Source::Close { closing, hold, key },
        });
        self.open_holds = self.open_holds.saturating_sub(1);
        Closed::Booked
    }

    fn held(&self, id: HoldId) -> Option<(KeyId, Reservation)> {
        self.holds.get(&id).map(|hold| (hold.key, hold.held))
    }

    fn set_held(&mut self, id: HoldId, held: Reservation) {
        if let Some(hold) = self.holds.get_mut(&id) {
            hold.held = held;
            if hold.row == HoldRow::Same {
                hold.row = HoldRow::Stale;
                self.pending.changed.push(id);
            }
        }
    }
}

/// The error for a refused call. A refusal changes nothing, so the rates are the same as before the call.
fn refused(refusal: Refusal, key: &Key, now: UnixMs) -> AdmitError {
    AdmitError::Refused {
        refusal,
        rates: Rates::of(key, now),
    }
}

/// The contents of the entry that a close posts.
struct Booking {
    kind: EntryKind,
    charge: Micro,
    delta: Delta,
    note: Option<Box<str>>,
}

fn book(
    wallet: &mut ledger::Wallet,
    key: &mut ledger::Key,
    held: &Reservation,
    before: Micro,
    end: &End,
    now: UnixMs,
) -> Result<Booking, ledger::Overflow> {
    let (kind, note) = match end {
        End::Released => (EntryKind::Released, None),
        End::Abandoned => (EntryKind::Abandoned, None),
        End::Settled {
            charge,
            basis,
            tokens,
            ..
        } => {
            // Only the store knows for certain whether the hold has grown, so the store applies the limit.
            let charge = match basis {
                Basis::Reported => *charge,
                Basis::Counted => {
                    let all = before.checked_add(held.hold);
                    (*charge).min(all.unwrap_or(Micro::MAX))
                }
            };
            // The steps of a session have already charged `before`, so only the rest is charged here.
            let charge = if before == Micro::ZERO {
                charge
            } else {
                let rest = charge.checked_sub(before);
                rest.unwrap_or(Micro::ZERO).max(Micro::ZERO)
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
                    // A charge outside the range that can be stored cannot be booked, but must not keep the hold open.
                    // The note of the entry contains the requested charge.
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
