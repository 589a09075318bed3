//! An admitted call: credits are frozen for it until it is closed, exactly once.
//!
//! `Admission` is a value that must be ended by [`Admission::settle`] or [`Admission::release`]. One that is
//! dropped instead (its caller left, its future was cancelled, it panicked) closes itself by the rule for broken
//! calls (B2), so no code path can leak a hold.

use std::sync::Arc;
use std::time::Duration;

use ledger::{Meter, Micro, Rates, Reservation};
use protocol::native::Seen;
use protocol::{Failure, ToolCalls};
use store::{Admit, Basis, Close, Cost, Durable, End, HoldId, IfLost, KeyHead, MeterText};

use tokio::runtime::Handle;

use crate::billing::estimate::Estimate;
use crate::billing::metering::Metering;
use crate::billing::route_cost::RouteCost;
use crate::billing::usage_limits::UsageLimits;
use crate::call::failed_call::{FailedCall, unpriceable};
use crate::call::progress::Progress;
use crate::call::record::{ClientOutcome, Record, Settlement};
use crate::catalog::{Model, Route};
use crate::clock;
use crate::engine::Engine;
use crate::failures::try_again_soon;
use crate::settings::Commit;

/// A call that was admitted and is not closed yet.
#[derive(Debug)]
#[must_use = "credits stay frozen until the admission is settled or released"]
pub(crate) struct Admission {
    model: Arc<Model>,
    hold: HoldId,
    /// The reservation. For a session it includes what its steps have booked.
    held: Reservation,
    limits: UsageLimits,
    /// The growth that the ledger was asked for and may already have granted.
    growing: Option<PendingGrowth>,
    durable: Durable,
    pub(crate) rates: Rates,
    metering: Metering,
    /// The input as counted at admission, in the classes that the hold covers.
    reserved_input: Meter,
    /// Output tokens that the hold covers.
    reserved_output: u64,
    /// The output that request and profile allow. The hold grows ahead of the output up to here. Beyond, it grows
    /// only by what is observed, because most upstreams keep to the limit.
    output_bound: u64,
    /// Calls of built-in tools that the hold covers.
    reserved_tools: ToolCalls,
    progress: Arc<Progress>,
    /// What the route that is tried, or has answered, costs us.
    route_cost: Option<Arc<RouteCost>>,
    /// What the call was charged, set when the ledger has been told.
    charged: Option<Settlement>,
    /// `None` once the call is closed and journaled.
    record: Option<Box<Record>>,
}

/// A refused admission returns the record, so that the refusal is journaled too.
#[derive(Debug)]
pub(crate) struct RefusedAdmission {
    pub(crate) record: Box<Record>,
    pub(crate) failed: FailedCall,
}

impl Admission {
    /// Asks the ledger for a hold. A refusal consumes nothing.
    pub(crate) async fn request(
        key: &KeyHead,
        model: &Arc<Model>,
        estimate: Estimate,
        progress: Arc<Progress>,
        mut record: Box<Record>,
    ) -> Result<Box<Self>, RefusedAdmission> {
        let ask = match estimate.ask(&model.price) {
            Ok(ask) => ask,
            Err(error) => {
                return Err(RefusedAdmission {
                    record,
                    failed: unpriceable(model, &error).into(),
                });
            }
        };
        let admit = Admit {
            wallet: key.wallet,
            key: key.key,
            ask,
            request_id: record.request_id(),
            now: clock::now(),
        };
        record.ask_ledger();
        match progress.engine().store.admit(admit).await {
            Ok(admitted) => {
                progress.mark_admitted(admitted.hold);
                record.admitted(admitted.hold);
                Ok(Box::new(Self {
                    model: Arc::clone(model),
                    hold: admitted.hold,
                    held: ask,
                    limits: UsageLimits::new(estimate.tokens_possible, ask.hold),
                    growing: None,
                    durable: admitted.durable,
                    rates: admitted.rates,
                    metering: estimate.metering,
                    reserved_output: estimate.reserved.output,
                    reserved_input: Meter {
                        output: 0,
                        ..estimate.reserved
                    },
                    output_bound: estimate.output_bound,
                    reserved_tools: estimate.tools,
                    progress,
                    route_cost: None,
                    charged: None,
                    record: Some(record),
                }))
            }
            Err(error) => Err(RefusedAdmission {
                record,
                failed: FailedCall::from(&error),
            }),
        }
    }

    /// Waits until the hold is on disk, if the settings ask for that.
    pub(crate) async fn wait_until_durable(&self) -> Result<(), Failure> {
        if self.answers_before_commit() || self.durable.is_confirmed().await {
            return Ok(());
        }
        Err(unrecorded())
    }

    /// Waits until it is known whether the hold is on disk, if the settings ask for that.
    async fn wait_until_certain(&self) -> Result<(), Failure> {
        if self.answers_before_commit() {
            return Ok(());
        }
        self.durable.wait().await.map_err(|_lost| unrecorded())
    }

    /// Whether the answer leaves before the hold is on disk.
    fn answers_before_commit(&self) -> bool {
        self.engine().settings.commit == Commit::Behind
    }

    /// The caller has left. The call only drains from here on, and no longer counts against concurrency.
    pub(crate) fn stop_counting(&self) {
        self.engine().store.stop_counting(self.hold);
    }

    /// How much longer the upstream is read after the caller has left.
    pub(crate) fn drain_time_left(&self) -> Duration {
        self.progress.drain_time_left()
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        self.progress.engine()
    }

    /// The outcome of a complete answer as its caller saw it.
    pub(crate) fn outcome(&self) -> ClientOutcome {
        if self.progress.is_gone() {
            ClientOutcome::client_gone()
        } else {
            ClientOutcome::done()
        }
    }

    /// A route is being tried.
    pub(crate) fn start_attempt(&mut self, route: &Route) {
        self.route_cost.clone_from(&route.cost);
        self.note(|record| record.start_attempt(route));
    }

    /// What this usage costs us on the route that answered, if that is known.
    fn cost(&self, meter: &Meter) -> Option<Box<Cost>> {
        self.route_cost.as_ref().and_then(|cost| cost.of(meter))
    }

    /// Adds something to the journal row.
    pub(crate) fn note(&mut self, note: impl FnOnce(&mut Record)) {
        if let Some(record) = self.record.as_deref_mut() {
            note(record);
        }
    }

    /// Ends the call with what was seen of its answer.
    pub(crate) fn settle(mut self: Box<Self>, seen: &Seen, outcome: &ClientOutcome) {
        self.charge(seen);
        self.journal(outcome);
    }

    /// Ends a call whose answer is complete, and returns when the answer may leave.
    ///
    /// While the hold's batch is open, the charge joins it, and we wait for the commit of both: they succeed or
    /// fail together. This wait has no time limit. A charge that may still be committed cannot be taken back, so
    /// the caller either gets the answer late or learns that there is no charge. Once the batch has closed, we
    /// wait for the hold first. If it cannot be confirmed in time, nothing is charged for an answer that nobody
    /// gets (`docs/decisions/025`).
    pub(crate) async fn settle_whole(
        mut self: Box<Self>,
        seen: &Seen,
        dropped: Option<&str>,
    ) -> Result<(), Failure> {
        // If the ledger refuses, the charge is capped at the hold: the answer is complete and must be settled.
        if self.is_undercharged(seen) {
            let _ = self.grow(seen).await;
        }
        let together = self.durable.is_open();
        if together {
            self.charge(seen);
        }
        let durable = if together {
            self.wait_until_certain().await
        } else {
            self.wait_until_durable().await
        };
        match durable {
            Ok(()) => {
                if !together {
                    self.charge(seen);
                }
                self.note(|record| record.start_answer(dropped));
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

    /// Tells the ledger that the call has ended and what it costs.
    fn charge(&mut self, seen: &Seen) {
        if let Some(words) = &seen.withheld {
            self.note(|record| record.note_withheld(words));
        }
        let metrics = self.engine().metrics();
        let Bill {
            meter,
            basis,
            charge,
            is_malformed,
        } = self.bill(seen);
        // A session never has a usage report.
        if basis == Basis::Counted && !matches!(self.metering, Metering::Session(_)) {
            metrics.usage_missing.inc();
        }
        if seen.usage_malformed || is_malformed {
            metrics.usage_malformed.inc();
        }
        for tool in self.model.price.unpriced_tools(&meter) {
            let calls = meter.tools.get(tool).copied().unwrap_or(0);
            metrics.unpriced_tool(&self.model.id, tool, calls);
        }
        let tokens = meter.input_total().saturating_add(meter.output_total());
        let cost = self.cost(&meter);
        let settlement = Settlement {
            charge,
            meter: MeterText::from(&meter),
            cost: cost.as_deref().map(|cost| cost.amount),
        };
        // An answer that waits for its hold is withheld if the hold is lost.
        let if_lost = if self.answers_before_commit() || self.durable.is_done() {
            IfLost::Charge
        } else {
            IfLost::Drop
        };
        self.engine().store.close(Close {
            if_lost,
            hold: self.hold,
            end: End::Settled {
                charge,
                meter: settlement.meter.clone(),
                price_version: self.model.price_version,
                basis,
                tokens: Some(tokens),
                cost,
            },
            now: clock::now(),
        });
        self.charged = Some(settlement);
    }

    fn close_released(&mut self, outcome: &ClientOutcome) {
        self.engine().store.close(Close {
            if_lost: IfLost::Drop,
            hold: self.hold,
            end: End::Released,
            now: clock::now(),
        });
        self.journal(outcome);
    }

    /// Journals a call whose caller has left. If the charge stands or falls with the hold, the row waits until
    /// the hold is durable or lost.
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

    /// Journals the call, which is over.
    fn journal(&mut self, outcome: &ClientOutcome) {
        let Some(record) = self.record.take() else {
            return;
        };
        let row = match self.charged.take() {
            Some(settlement) => record.settled(outcome, settlement),
            None => record.released(outcome),
        };
        self.engine().journal(row);
    }

    /// The reported usage if there is a plausible report, otherwise our own count.
    fn bill(&self, seen: &Seen) -> Bill {
        let mut is_malformed = false;
        if let Some(meter) = self.metering.reported(seen, &self.model.price) {
            is_malformed = true;
            match self.model.price.price(&meter) {
                Ok(charge) if self.limits.allow(&meter, charge) => {
                    return Bill {
                        meter,
                        basis: Basis::Reported,
                        charge,
                        is_malformed: false,
                    };
                }
                Ok(_) => {
                    tracing::error!(model = %self.model.id, ?meter, "reported usage is beyond what the model can do");
                }
                // A price beyond the range of money counts as no report, so that pricing the entry again gives
                // the same amount (V7).
                Err(error) => {
                    tracing::error!(model = %self.model.id, %error, "reported usage cannot be priced");
                }
            }
        }
        let meter = if is_malformed {
            // Nothing of a malformed report counts, not even the parts that look right.
            let seen = Seen {
                usage: None,
                ..seen.clone()
            };
            self.metering.counted(&seen, &self.model.price)
        } else {
            self.metering.counted(seen, &self.model.price)
        };
        // Our own count may be too high, and the caller has agreed to the hold. The store knows whether the hold
        // has grown and applies the final cap.
        let growing = self.growing.as_ref();
        let growing = growing.map_or(Micro::ZERO, |it| it.more.hold);
        let hold = self.held.hold.checked_add(growing);
        let hold = hold.unwrap_or(self.held.hold);
        let price = self.model.price.price(&meter);
        Bill {
            meter,
            basis: Basis::Counted,
            charge: price.map_or(hold, |price| price.min(hold)),
            is_malformed,
        }
    }
}

/// An extension that the ledger was asked for.
#[derive(Debug)]
struct PendingGrowth {
    more: Reservation,
    /// The tool calls that the hold covers with it.
    tools: ToolCalls,
}

/// What a call costs, and on what basis.
struct Bill {
    meter: Meter,
    basis: Basis,
    charge: Micro,
    /// The upstream's report was not plausible.
    is_malformed: bool,
}

impl Drop for Admission {
    fn drop(&mut self) {
        if self.record.is_none() {
            return;
        }
        self.engine().metrics().clients_gone.inc();
        let outcome = ClientOutcome::client_gone();
        if self.charged.is_some() {
            self.journal_when_certain(outcome);
        } else if self.progress.is_sent() {
            self.charge(&Seen::default());
            self.journal_when_certain(outcome);
        } else {
            self.close_released(&outcome);
        }
    }
}

/// The hold could not be written in time, or not at all.
fn unrecorded() -> Failure {
    try_again_soon("The call could not be recorded.")
}

mod growth;
#[cfg(test)]
pub(crate) mod tests;
