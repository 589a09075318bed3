//! An admitted call: credits are frozen for it until it is closed, once.
//!
//! `Admission` is the obligation. [`Admission::settle`] and [`Admission::release`] end it; one
//! that is dropped on the way (its caller left, its future was cancelled, it panicked) closes
//! itself by the formula for broken calls (B2), so that no path can leak a hold.

use std::sync::Arc;
use std::time::Duration;

use ledger::{Meter, Micro, Rates, Reservation, Step};
use protocol::native::Seen;
use protocol::{Failure, ToolCalls};
use store::{
    Admit, AdmitError, Basis, Close, Durable, End, Extend, HoldId, IfLost, KeyHead, MeterText,
    SessionStep,
};

use tokio::runtime::Handle;

use crate::billing::estimate::{Estimate, reserve_tools};
use crate::billing::metering::Metering;
use crate::billing::usage_limits::UsageLimits;
use crate::call::failed_call::{FailedCall, unpriceable};
use crate::call::progress::Progress;
use crate::call::record::{ClientOutcome, Record};
use crate::catalog::Model;
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
    /// What is held; of a session with what its steps have booked.
    held: Reservation,
    limits: UsageLimits,
    /// What the hold has been asked to grow by, and may already have.
    growing: Option<PendingGrowth>,
    durable: Durable,
    pub(crate) rates: Rates,
    metering: Metering,
    /// The input as counted at admission, in the classes that it is held for.
    reserved_input: Meter,
    /// Output tokens that the hold covers.
    reserved_output: u64,
    /// The output that request and profile allow. The hold grows early up to here. Beyond it grows
    /// only by what is observed, since most upstreams keep to the limit.
    output_bound: u64,
    /// Calls of built-in tools that the hold covers.
    reserved_tools: ToolCalls,
    progress: Arc<Progress>,
    /// What the call was charged, once the ledger has been told.
    charged: Option<(Micro, MeterText)>,
    /// Gone once the call is closed and journaled.
    record: Option<Box<Record>>,
}

/// A refused admission gives the record back, so that the refusal is journaled too.
#[derive(Debug)]
pub(crate) struct RefusedAdmission {
    pub(crate) record: Box<Record>,
    pub(crate) failed: FailedCall,
}

impl Admission {
    /// Asks the ledger; a refusal has consumed nothing.
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

    /// Waits until the hold is on disk, where the settings ask for it.
    pub(crate) async fn wait_until_durable(&self) -> Result<(), Failure> {
        if self.answers_before_commit() || self.durable.is_confirmed().await {
            return Ok(());
        }
        Err(unrecorded())
    }

    /// Waits until it is certain whether the hold is on disk, where the settings ask for it.
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

    /// Whether the output has come so near to what the hold covers that it should grow.
    pub(crate) fn wants_more(&self, seen: &Seen) -> bool {
        let ahead = self
            .observed_output(seen)
            .saturating_add(self.output_step() / 4);
        self.reserved_output < self.output_bound && ahead >= self.reserved_output
            || self.is_uncovered(seen)
            || self.wants_more_tools(seen)
    }

    /// Whether more output has gone by than the hold covers. Our own count may be a little too
    /// high, and an answer that keeps to its limit must not need a larger hold for that.
    pub(crate) fn is_uncovered(&self, seen: &Seen) -> bool {
        let slack = (self.reserved_output / 4).min(self.output_step() / 4);
        let covered = self.reserved_output.saturating_add(slack + SLACK_TOKENS);
        self.output_bound > 0 && self.observed_output(seen) > covered
    }

    /// Output tokens that have gone by: as counted, or as the upstream tells on the way, which
    /// knows of reasoning that it does not show. A report beyond the bound is not believed.
    fn observed_output(&self, seen: &Seen) -> u64 {
        let told = seen.interim_usage.map_or(0, |usage| usage.output_total());
        let counted = self.metering.observed_output(seen);
        counted.max(told.min(self.output_bound))
    }

    /// Output tokens that the hold grows by at a time.
    fn output_step(&self) -> u64 {
        match self.engine().settings.output_reserve_tokens {
            // The whole bound is held at first. What comes beyond it is covered in steps.
            0 => OUTPUT_STEP_TOKENS,
            step => step,
        }
    }

    /// Has the hold grow if the output asks for it. An error says that it has not.
    pub(crate) async fn grow(&mut self, seen: &Seen) -> Result<(), AdmitError> {
        if !self.wants_more(seen) {
            return Ok(());
        }
        let Some(step) = self.next_step(seen) else {
            return Ok(());
        };
        let grown = self.engine().store.clone().extend(step).await;
        match grown {
            Ok(_) => self.growth_granted(),
            Err(_) => self.growth_refused(),
        }
        grown.map(drop)
    }

    /// Whether a complete answer that reports no usage has more output than the hold covers. The
    /// charge of such an answer is capped at the hold, which must grow before it is settled.
    pub(crate) fn is_undercharged(&self, seen: &Seen) -> bool {
        seen.report().is_none() && self.is_uncovered(seen)
    }

    fn wants_more_tools(&self, seen: &Seen) -> bool {
        let uncovered = |(tool, calls)| calls > self.reserved_tools.get(tool);
        self.model.price.prices_tools() && seen.tools.iter().any(uncovered)
    }

    /// What the hold grows by next: one step of output and the tools that were used, priced as at
    /// admission.
    pub(crate) fn next_step(&mut self, seen: &Seen) -> Option<Extend> {
        let step = self.output_step();
        let observed = self.observed_output(seen);
        let mut reach = self.reserved_output.max(observed).checked_add(step)?;
        if observed <= self.output_bound {
            reach = reach.min(self.output_bound).max(self.reserved_output);
        }
        let tokens = reach - self.reserved_output;
        let mut tools = self.reserved_tools;
        tools.raise(&seen.tools);
        let price = |output: u64, tools: &ToolCalls| {
            let mut meter = Meter {
                output,
                ..self.reserved_input.clone()
            };
            reserve_tools(&mut meter, &self.model.price, tools);
            ledger::hold_of(&self.model.price, &meter).ok()
        };
        // The difference of two prices: the input is paid for already, the rounding too.
        let now = price(self.reserved_output, &self.reserved_tools)?;
        let output = self.reserved_output.checked_add(tokens)?;
        let hold = price(output, &tools)?.checked_sub(now)?;
        // What the hold grows by was among what the call is exposed to, but for the tools.
        let of_output = price(output, &self.reserved_tools)?.checked_sub(now)?;
        let more = Reservation {
            hold,
            exposure: hold.checked_sub(of_output)?,
            tokens,
            counts: self.held.counts,
        };
        self.growing = Some(PendingGrowth { more, tools });
        Some(Extend {
            hold: self.hold,
            more,
            now: clock::now(),
        })
    }

    /// What a session has used so far: it is settled by this, however it ends.
    pub(crate) fn set_session_usage(&mut self, meter: Meter) {
        self.metering = Metering::Session(Box::new(meter));
    }

    /// Whether the hold covers this much.
    pub(crate) fn covers(&self, meter: &Meter) -> bool {
        let price = self.model.price.price(meter);
        price.is_ok_and(|price| price <= self.held.hold)
    }

    /// The next step of a session: books what was used and has the hold reach further, as far as is
    /// wanted or at least a little. None when that is beyond all money.
    pub(crate) fn step(
        &mut self,
        used: &Meter,
        least: &Meter,
        wanted: &Meter,
    ) -> Option<SessionStep> {
        let price = |meter: &Meter| self.model.price.price(meter).ok();
        let further = self.held.hold.checked_add(Micro::new(1))?;
        let least = price(least)?.max(further);
        let step = Step {
            used: price(used)?,
            wanted: price(wanted)?.max(least),
            least,
        };
        let more = Reservation {
            hold: step.wanted.checked_sub(self.held.hold)?,
            exposure: Micro::ZERO,
            tokens: 0,
            counts: self.held.counts,
        };
        self.growing = Some(PendingGrowth {
            more,
            tools: self.reserved_tools,
        });
        Some(SessionStep {
            hold: self.hold,
            step,
            meter: used.into(),
            price_version: self.model.price_version,
            now: clock::now(),
        })
    }

    /// A session's hold reaches so far, from its beginning.
    pub(crate) fn session_hold_reaches(&mut self, reach: Micro) {
        self.growing = None;
        self.held.hold = reach;
    }

    /// The hold has grown by what was asked for.
    pub(crate) fn growth_granted(&mut self) {
        if let Some(PendingGrowth { more, tools }) = self.growing.take() {
            self.reserved_output = self.reserved_output.saturating_add(more.tokens);
            self.reserved_tools = tools;
            self.held = self.held.extended(&more).unwrap_or(self.held);
        }
    }

    /// The hold has not grown.
    pub(crate) fn growth_refused(&mut self) {
        self.growing = None;
    }

    /// The caller has gone: the call only drains, and no longer counts against concurrency.
    pub(crate) fn stop_counting(&self) {
        self.engine().store.stop_counting(self.hold);
    }

    /// How long the call is still heard out after its caller has left.
    pub(crate) fn drain_time_left(&self) -> Duration {
        self.progress.drain_time_left()
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        self.progress.engine()
    }

    /// How a complete answer ended, as its caller saw it: who has left sees nothing of it.
    pub(crate) fn outcome(&self) -> ClientOutcome {
        if self.progress.is_gone() {
            ClientOutcome::client_gone()
        } else {
            ClientOutcome::done()
        }
    }

    /// Notes something for the journal.
    pub(crate) fn note(&mut self, note: impl FnOnce(&mut Record)) {
        if let Some(record) = self.record.as_deref_mut() {
            note(record);
        }
    }

    /// Ends the call on what was seen of its answer.
    pub(crate) fn settle(mut self: Box<Self>, seen: &Seen, outcome: &ClientOutcome) {
        self.charge(seen);
        self.journal(outcome);
    }

    /// Ends a call whose answer is whole, and returns when the answer may leave.
    ///
    /// While the hold's batch is open, the ledger is told at once and waited for then: hold and charge
    /// stand or fall together, and no hold is left behind. That takes as long as it takes: a charge that
    /// may still be committed cannot be taken back, so the caller gets the answer late or learns that
    /// there is no charge. Later it is the hold that is waited for: when that cannot be confirmed in
    /// time, nothing is charged for an answer that nobody gets (`docs/decisions/025`).
    pub(crate) async fn settle_whole(
        mut self: Box<Self>,
        seen: &Seen,
        dropped: Option<&str>,
    ) -> Result<(), Failure> {
        // A refusal leaves the charge at the hold: the answer is complete and has to be settled.
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
                    // Neither hold nor charge happened.
                    self.charged = None;
                    self.journal(&outcome);
                } else {
                    self.close_released(&outcome);
                }
                Err(failure)
            }
        }
    }

    /// Ends the call without a charge: nothing was delivered.
    pub(crate) fn release(mut self: Box<Self>, failure: &Failure) {
        self.close_released(&ClientOutcome::failed(failure));
    }

    /// Tells the ledger what the call costs, and that it has ended.
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
        // A session is always counted by us.
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
        let meter = MeterText::from(&meter);
        // An answer that waits for its hold is not given when the hold is lost.
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
                meter: meter.clone(),
                price_version: self.model.price_version,
                basis,
                tokens: Some(tokens),
            },
            now: clock::now(),
        });
        self.charged = Some((charge, meter));
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

    /// Writes a call down whose caller has left. A charge that falls with its hold is written down when the
    /// fate of the hold is known.
    fn journal_when_certain(&mut self, outcome: ClientOutcome) {
        let is_certain = self.answers_before_commit() || self.durable.is_done();
        if is_certain || Handle::try_current().is_err() {
            return self.journal(&outcome);
        }
        let (Some(record), Some((charge, meter))) = (self.record.take(), self.charged.take())
        else {
            return;
        };
        let (engine, durable) = (Arc::clone(self.engine()), self.durable.clone());
        let tasks = engine.tasks.clone();
        tasks.spawn(async move {
            let row = match durable.wait().await {
                Ok(()) => record.settled(&outcome, charge, meter),
                Err(_lost) => record.released(&outcome),
            };
            engine.journal(row);
        });
    }

    /// Writes the call down; it is over.
    fn journal(&mut self, outcome: &ClientOutcome) {
        let Some(record) = self.record.take() else {
            return;
        };
        let row = match self.charged.take() {
            Some((charge, meter)) => record.settled(outcome, charge, meter),
            None => record.released(outcome),
        };
        self.engine().journal(row);
    }

    /// Reported usage where there is some, else our own count of what went by.
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
                // A report beyond all money is as good as none, and re-prices to nothing (V7).
                Err(error) => {
                    tracing::error!(model = %self.model.id, %error, "reported usage cannot be priced");
                }
            }
        }
        let meter = if is_malformed {
            // Nothing of the report counts, not even beside what it leaves out.
            let seen = Seen {
                usage: None,
                ..seen.clone()
            };
            self.metering.counted(&seen, &self.model.price)
        } else {
            self.metering.counted(seen, &self.model.price)
        };
        // Our own count may be too high; what the caller agreed to is the hold. The store knows
        // whether it has grown, and has the last word.
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

/// Output that the count may be too high by, beside a share of the hold.
const SLACK_TOKENS: u64 = 16;
/// The step of a hold's growth where the settings name none.
const OUTPUT_STEP_TOKENS: u64 = 4_096;

/// A hold that was asked to grow.
#[derive(Debug)]
struct PendingGrowth {
    more: Reservation,
    /// The calls of built-in tools that it covers then.
    tools: ToolCalls,
}

/// What a call costs, and what that rests on.
struct Bill {
    meter: Meter,
    basis: Basis,
    charge: Micro,
    /// The answer's report was not believed.
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

/// The hold of a call could not be written in time, or not at all.
fn unrecorded() -> Failure {
    try_again_soon("The call could not be recorded.")
}

#[cfg(test)]
pub(crate) mod tests;
