//! Decides the commands of a batch and answers their callers.

use std::sync::Arc;

use ledger::Micro;

use super::transaction::{HoldOwner, OpenTransaction};
use super::worker::Worker;
use crate::books::Closed;
use crate::error::{AdmitError, StoreError};
use crate::queue::command::AdmittedCall;
use crate::queue::command::{AdmissionReply, Command};
use crate::queue::durable::Batch;
use crate::records::call::{Close, IfLost};
use crate::records::ids::{HoldId, KeyId};

impl Worker {
    /// Decides a command. If the receiver is gone, the answer is dropped; a dropped admission closes its hold.
    pub(super) fn apply(
        &mut self,
        command: Command,
        begun: Option<&OpenTransaction>,
        batch: &Arc<Batch>,
    ) {
        match command {
            Command::Admit(mut admit, reply) => {
                if reply.is_closed() {
                    return;
                }
                if !self.lane.is_decidable(admit.key) {
                    drop(reply.send(Err(AdmitError::Unavailable)));
                    return;
                }
                if let Some(begun) = begun {
                    admit.now = begun.now;
                    if !self.lane.node.may_open(begun) {
                        drop(reply.send(Err(AdmitError::Unavailable)));
                        return;
                    }
                }
                let (now, key) = (admit.now, admit.key);
                let answer = self.books.admit(admit).map(|(hold, rates)| {
                    self.add_owner(hold, key);
                    let admitted = AdmittedCall {
                        hold,
                        rates,
                        durable: batch.durable(),
                    };
                    AdmissionReply::new(admitted, now, &self.lane.queue)
                });
                drop(reply.send(answer));
            }
            Command::Extend(mut extend, reply) => {
                if let Some(begun) = begun {
                    extend.now = begun.now;
                }
                self.regrow(extend.hold);
                let answer = match self.books.extend(&extend) {
                    Some(Ok(())) => Ok(batch.durable()),
                    Some(Err(refused)) => Err(refused),
                    None => Err(AdmitError::Unavailable),
                };
                drop(reply.send(answer));
            }
            Command::Step(mut stepping, reply) => {
                if let Some(begun) = begun {
                    stepping.now = begun.now;
                }
                self.regrow(stepping.hold);
                let answer = self.books.step(stepping);
                drop(reply.send(answer.unwrap_or(Err(AdmitError::Unavailable))));
            }
            Command::Close(mut closing) => {
                if let Some(begun) = begun {
                    closing.now = begun.now;
                }
                self.close(closing);
            }
            // `Uncount` is not repeated after a failed batch. The hold then counts until it is closed.
            Command::Uncount(hold) => self.books.stop_counting(hold),
            Command::Balance(key, _, reply) if !self.lane.is_decidable(key) => {
                drop(reply.send(Err(StoreError::Unavailable)));
            }
            Command::Balance(key, now, reply) => {
                let now = begun.map_or(now, |begun| begun.now);
                let balance = self.books.balance(key, now);
                drop(reply.send(balance.map(|found| (found, batch.durable()))));
            }
            Command::Flush(reply) => {
                if let Some(reply) = self.lane.keep_flush(reply) {
                    drop(reply.send(batch.durable()));
                }
            }
            // Tasks and alerts have their own connections.
            Command::Task(_) | Command::Alert(_) => command.refuse(AdmitError::Unavailable),
            Command::Change(_) => unreachable!("a change has a transaction of its own"),
        }
    }

    /// Remembers the owner of a hold as soon as the call is admitted, because the close of the hold needs the owner.
    fn add_owner(&mut self, hold: HoldId, key: KeyId) {
        let mut state = self.lane.state.borrow_mut();
        if let Some(key) = state.keys.get_mut(key).copied() {
            let wallet = key.wallet;
            state.owners.insert(hold, HoldOwner { wallet, key });
            self.lane.counters.open_holds.add(1);
        }
    }

    pub(super) fn close(&mut self, closing: Close) {
        let (hold, charge) = (closing.hold, closing.charge().map(Micro::get));
        if !self.reopen_lost(&closing) {
            tracing::error!(%hold, "a lost hold cannot be opened again");
            self.lane.set_aside([closing]);
            return;
        }
        self.regrow(hold);
        match self.books.close(closing) {
            Closed::Booked => {}
            Closed::Late => {
                self.lane.counters.late_closes.add(1);
                if let Some(charge) = charge {
                    // Logged for reconciliation: the call was answered but is not charged.
                    tracing::warn!(%hold, charge, "a settlement came after the end of its hold");
                }
                self.remove_owners(&[hold]);
            }
            Closed::Unbookable(closing) => {
                tracing::error!(%hold, "a hold could not be closed: the stored amounts do not contain it");
                self.lane.set_aside([*closing]);
            }
        }
    }

    /// Reopens the hold of a close if the hold was lost with a failed transaction although the call was answered.
    /// Returns whether the close can continue.
    fn reopen_lost(&mut self, closing: &Close) -> bool {
        let id = closing.hold;
        let mut state = self.lane.state.borrow_mut();
        let Some(hold) = state.lost.get(&id) else {
            return true;
        };
        let charged = closing.charge().is_some() && closing.if_lost == IfLost::Charge;
        let there = self.books.holds.contains_key(&id);
        if charged && !there && !self.books.reopen(id, hold, closing.now) {
            return false;
        }
        state.lost.remove(&id);
        true
    }

    /// Grows a hold again whose growth was lost with a failed transaction.
    fn regrow(&mut self, hold: HoldId) {
        let booked_and_held = self.lane.state.borrow_mut().lost_extensions.remove(&hold);
        if let Some(booked_and_held) = booked_and_held {
            self.books.regrow(hold, booked_and_held);
        }
    }

    pub(super) fn remove_owners(&self, holds: &[HoldId]) {
        let mut state = self.lane.state.borrow_mut();
        for hold in holds {
            if state.owners.remove(hold).is_some() {
                self.lane.counters.open_holds.sub(1);
            }
        }
    }
}
