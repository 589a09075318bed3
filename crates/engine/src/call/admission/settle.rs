//! Ends an admitted call: computes its charge, and decides when its answer may be sent.

use std::sync::Arc;

use ledger::Micro;
use protocol::Failure;
use protocol::native::AnswerSummary;
use store::{Basis, Close, End, IfLost};
use tokio::runtime::Handle;

use super::Admission;
use crate::billing::bill::Bill;
use crate::billing::metering::Metering;
use crate::call::record::{ClientOutcome, Settlement};
use crate::clock;
use crate::failures::try_again_soon;
use crate::settings::Commit;

impl Admission {
    /// Waits until the hold is durable, if the settings ask for that, and records that the answer starts. If the hold
    /// cannot be confirmed, releases it and fails. `dropped` names the members of the request that could not be
    /// converted.
    pub(crate) async fn start_answer(
        mut self: Box<Self>,
        dropped: Option<&str>,
    ) -> Result<Box<Self>, Failure> {
        if let Err(failure) = self.wait_until_durable().await {
            self.release(&failure);
            return Err(failure);
        }
        self.update_record(|record| record.start_answer(dropped));
        Ok(self)
    }

    /// Settles the call on the part of the answer that has arrived.
    pub(crate) fn settle(mut self: Box<Self>, summary: &AnswerSummary, outcome: &ClientOutcome) {
        self.charge(summary);
        self.journal(outcome);
    }

    /// Ends a call whose answer is complete, and returns when the answer may be sent.
    ///
    /// While the hold's batch is open, the charge joins the batch, and both are committed or lost together. We wait for
    /// this commit without a time limit, because a charge that may still be committed cannot be taken back. The caller
    /// gets the answer late, or gets an error and is not charged. Once the batch has closed, we wait for the hold
    /// first. If the hold is not confirmed in time, the caller gets no answer and is not charged
    /// (`docs/decisions/025`).
    pub(crate) async fn settle_whole(
        mut self: Box<Self>,
        summary: &AnswerSummary,
        dropped: Option<&str>,
    ) -> Result<(), Failure> {
        // If the ledger refuses, the charge is capped at the hold, because the answer is complete and must be settled.
        if self.is_undercharged(summary) {
            // Boxed, because few calls get here.
            let _ = Box::pin(self.grow(summary)).await;
        }
        let together = self.durable.is_open();
        if together {
            self.charge(summary);
        }
        let durable = if together {
            self.wait_until_certain().await
        } else {
            self.wait_until_durable().await
        };
        match durable {
            Ok(()) => {
                if !together {
                    self.charge(summary);
                }
                self.update_record(|record| record.start_answer(dropped));
                let outcome = self.outcome();
                self.journal(&outcome);
                Ok(())
            }
            Err(failure) => {
                let outcome = ClientOutcome::failed(&failure);
                if together {
                    // Neither the hold nor the charge was committed.
                    self.charged = None;
                    self.journal(&outcome);
                } else {
                    self.close_released(&outcome);
                }
                Err(failure)
            }
        }
    }

    /// Ends the call without a charge, because nothing was delivered.
    pub(crate) fn release(mut self: Box<Self>, failure: &Failure) {
        self.close_released(&ClientOutcome::failed(failure));
    }

    /// Sends the settlement to the ledger.
    fn charge(&mut self, summary: &AnswerSummary) {
        if let Some(words) = &summary.withheld {
            self.update_record(|record| record.note_withheld(words));
        }
        let mut bill = self.bill(summary);
        bill.is_malformed |= summary.usage_malformed;
        bill.count(&self.model.id, &self.model.price, self.engine().metrics());
        let tokens = bill.meter.input_total();
        let tokens = tokens.saturating_add(bill.meter.output_total());
        if let Some(share) = self.route_share.take() {
            share.settle(tokens);
        }
        let cost = self.route_cost.as_deref();
        let end = bill.end(self.model.price_version, Some(tokens), cost);
        self.charged = Settlement::of(&end);
        // If the answer waits for its hold and the hold is lost, the answer is not sent and must not be charged.
        let if_lost = if self.answers_before_commit() || self.durable.is_done() {
            IfLost::Charge
        } else {
            IfLost::NoCharge
        };
        self.engine().store.close(Close {
            if_lost,
            hold: self.hold,
            end,
            now: clock::now(),
        });
    }

    fn close_released(&mut self, outcome: &ClientOutcome) {
        self.engine().store.close(Close {
            if_lost: IfLost::NoCharge,
            hold: self.hold,
            end: End::Released,
            now: clock::now(),
        });
        self.journal(outcome);
    }

    /// Journals a call whose caller has left. If the charge is committed together with the hold, the row waits until
    /// the hold is known to be durable or lost.
    fn journal_when_certain(&mut self, outcome: ClientOutcome) {
        let is_certain = self.answers_before_commit() || self.durable.is_done();
        if is_certain || Handle::try_current().is_err() {
            return self.journal(&outcome);
        }
        let (Some(record), Some(settlement)) = (self.record.take(), self.charged.take()) else {
            return;
        };
        let (engine, durable) = (Arc::clone(self.engine()), self.durable.clone());
        let tasks = engine.tasks.clone();
        tasks.spawn(async move {
            let row = match durable.wait().await {
                Ok(()) => record.settled(&outcome, settlement),
                Err(_lost) => record.released(&outcome),
            };
            engine.journal(row);
        });
    }

    fn journal(&mut self, outcome: &ClientOutcome) {
        let charged = self.charged.take();
        self.record.journal(|record| match charged {
            Some(settlement) => record.settled(outcome, settlement),
            None => record.released(outcome),
        });
    }

    /// Bills the upstream's report if it is plausible, otherwise our own count.
    fn bill(&self, summary: &AnswerSummary) -> Bill {
        let price = &self.model.price;
        let reported = self.metering.reported(summary, price);
        let is_malformed = reported.is_some();
        if let Some(meter) = reported {
            let mut limits = self.limits;
            if !meter.tools.is_empty() {
                limits = limits.with_tools(&self.reserved_tools, &summary.tools);
            }
            if let Some(bill) = Bill::reported(meter, price, &limits, &self.model.id) {
                return bill;
            }
        }
        let meter = if is_malformed {
            // No part of a malformed report counts, even if it looks right.
            let summary = AnswerSummary {
                usage: None,
                ..summary.clone()
            };
            self.metering.counted(&summary, price)
        } else {
            self.metering.counted(summary, price)
        };
        // Our own count may be too high, and the caller has agreed only to the hold. The store knows whether the hold
        // has grown, and applies the final cap.
        let growing = self.growing.as_ref();
        let growing = growing.map_or(Micro::ZERO, |it| it.more.hold);
        let hold = self.held.hold.checked_add(growing);
        let hold = hold.unwrap_or(self.held.hold);
        let charge = price.price(&meter).map_or(hold, |charge| charge.min(hold));
        Bill {
            meter,
            basis: Basis::Counted,
            charge,
            // Sessions never get a usage report.
            is_missing: !matches!(self.metering, Metering::Session(_)),
            is_malformed,
        }
    }

    /// Waits until the hold is on disk, if the settings ask for that.
    pub(crate) async fn wait_until_durable(&self) -> Result<(), Failure> {
        if self.answers_before_commit() || self.durable.is_confirmed().await {
            return Ok(());
        }
        Err(unrecorded())
    }

    /// Waits until the hold is known to be durable or lost, if the settings ask for that.
    async fn wait_until_certain(&self) -> Result<(), Failure> {
        if self.answers_before_commit() {
            return Ok(());
        }
        self.durable.wait().await.map_err(|_lost| unrecorded())
    }

    fn answers_before_commit(&self) -> bool {
        self.engine().settings.commit == Commit::Behind
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        if !self.record.is_open() {
            return;
        }
        self.engine().metrics().clients_gone.inc();
        let outcome = ClientOutcome::client_gone();
        if self.charged.is_some() {
            self.journal_when_certain(outcome);
        } else if self.record.progress().is_sent() {
            self.charge(&AnswerSummary::default());
            self.journal_when_certain(outcome);
        } else {
            self.close_released(&outcome);
        }
    }
}

/// The failure for a hold that was not written in time or was lost.
fn unrecorded() -> Failure {
    try_again_soon("The call could not be recorded.")
}
