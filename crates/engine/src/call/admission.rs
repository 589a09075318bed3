//! An admitted call or session. Its credits stay frozen until it is closed, exactly once.
//!
//! An `Admission` must be ended by [`Admission::settle`], [`Admission::settle_whole`] or [`Admission::release`]. If it
//! is dropped instead (the caller left, the future was cancelled, the task panicked), it closes itself: by the rule for
//! broken calls (B2) if the request may have been sent, otherwise without a charge. So no code path can leak a hold.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use ledger::{Meter, Micro, Rates, Reservation};
use protocol::{Failure, ToolCalls};
use store::{Admit, Cost, Durable, HoldId, KeyHead, RequestId};

use crate::billing::estimate::Estimate;
use crate::billing::metering::Metering;
use crate::billing::route_cost::RouteCost;
use crate::billing::usage_limits::UsageLimits;
use crate::call::attempt::AttemptLog;
use crate::call::failed_call::{FailedCall, unpriceable};
use crate::call::open_record::OpenRecord;
use crate::call::record::{ClientOutcome, Record, Settlement};
use crate::call::route_share::RouteShare;
use crate::catalog::{Model, Route};
use crate::clock;
use crate::engine::Engine;

mod growth;
mod settle;
#[cfg(test)]
pub(crate) mod tests;

#[derive(Debug)]
#[must_use = "credits stay frozen until the admission is settled or released"]
pub(crate) struct Admission {
    model: Arc<Model>,
    hold: HoldId,
    /// The current reservation. For a session, the amount includes what its steps have already booked.
    held: Reservation,
    /// The part of the hold that this model does not need. It was reserved because the call may use a more expensive
    /// model: the one that the caller named, or a fallback.
    surplus: Micro,
    limits: UsageLimits,
    /// The growth that we have requested from the ledger. The ledger may already have granted it.
    growing: Option<PendingGrowth>,
    durable: Durable,
    pub(crate) rates: Rates,
    metering: Metering,
    /// The usage that the hold covers apart from output tokens and tools; for text, the input as counted at admission.
    reserved_input: Meter,
    /// The number of output tokens that the hold covers.
    reserved_output: u64,
    /// The maximum output by request and profile. Up to this bound, the hold grows ahead of the output. Above the
    /// bound, the hold grows only after the output has exceeded the hold, because most upstreams respect the limit.
    output_bound: u64,
    /// The calls of built-in tools that the hold covers.
    reserved_tools: ToolCalls,
    /// Our cost on the route that is being tried or has answered.
    route_cost: Option<Arc<RouteCost>>,
    /// The share that the attempt has taken from the limits of its route.
    route_share: Option<RouteShare>,
    /// The charge of the call, set when the settlement has been sent to the ledger.
    charged: Option<Settlement>,
    /// The journal record. It stays open until the call is closed.
    record: OpenRecord,
}

/// A refused admission. It returns the record, so that the refusal is journaled too.
#[derive(Debug)]
pub(crate) struct RefusedAdmission {
    pub(crate) record: OpenRecord,
    pub(crate) failed: FailedCall,
}

impl RefusedAdmission {
    /// Whether the ledger might have granted a smaller hold.
    pub(crate) fn is_about_amounts(&self) -> bool {
        matches!(self.failed.failure.status(), 402 | 429)
    }

    pub(crate) fn journal(self) -> FailedCall {
        self.record.refuse(self.failed)
    }
}

impl Admission {
    /// Asks the ledger for a hold. A refusal consumes nothing.
    pub(crate) fn request(
        key: &KeyHead,
        model: &Arc<Model>,
        estimate: &Estimate,
        record: OpenRecord,
    ) -> impl Future<Output = Result<Box<Self>, RefusedAdmission>> {
        Self::request_covering(key, model, estimate, None, record)
    }

    /// Like [`Admission::request`], for a call with fallback models: the hold also covers the reservations of all
    /// `fallbacks`.
    pub(crate) async fn request_covering(
        key: &KeyHead,
        model: &Arc<Model>,
        estimate: &Estimate,
        fallbacks: Option<Reservation>,
        mut record: OpenRecord,
    ) -> Result<Box<Self>, RefusedAdmission> {
        let debt_limit = record.progress().engine().settings.debt_limit;
        let own = match estimate.reservation(&model.price, debt_limit) {
            Ok(own) => own,
            Err(error) => {
                return Err(RefusedAdmission {
                    record,
                    failed: unpriceable(model, &error).into(),
                });
            }
        };
        let ask = fallbacks.map_or(own, |others| own.covering_both(&others));
        let admit = Admit {
            wallet: key.wallet,
            key: key.key,
            ask,
            request_id: record.ask_ledger(),
            now: clock::now(),
        };
        let admitted = record.progress().engine().store.admit(admit).await;
        match admitted {
            Ok(admitted) => {
                record.progress().mark_admitted(admitted.hold);
                record.update_record(|record| record.admitted(admitted.hold));
                Ok(Box::new(Self {
                    model: Arc::clone(model),
                    hold: admitted.hold,
                    held: ask,
                    surplus: ask.hold.checked_sub(own.hold).unwrap_or_default(),
                    limits: UsageLimits::new(estimate.tokens_possible, own.hold, debt_limit),
                    growing: None,
                    durable: admitted.durable,
                    rates: admitted.rates,
                    metering: estimate.metering.clone(),
                    reserved_output: estimate.reserved.output,
                    reserved_input: Meter {
                        output: 0,
                        ..estimate.reserved.clone()
                    },
                    output_bound: estimate.output_bound,
                    reserved_tools: estimate.tools,
                    route_cost: None,
                    route_share: None,
                    charged: None,
                    record,
                }))
            }
            Err(error) => Err(RefusedAdmission {
                record,
                failed: FailedCall::from(&error),
            }),
        }
    }

    /// Continues with another model, whose price the hold covers. No part of an answer has been received yet.
    pub(crate) fn fall_back(&mut self, model: &Arc<Model>, estimate: Estimate) {
        let before = std::mem::replace(&mut self.model, Arc::clone(model));
        self.update_record(|record| record.fall_back(&before.id, &model.id));
        let debt_limit = self.engine().settings.debt_limit;
        let own = estimate.reservation(&model.price, debt_limit);
        let own = own.map_or(self.held.hold, |own| own.hold.min(self.held.hold));
        self.surplus = self.held.hold.checked_sub(own).unwrap_or_default();
        self.limits = UsageLimits::new(estimate.tokens_possible, own, debt_limit);
        self.metering = estimate.metering;
        self.reserved_output = estimate.reserved.output;
        self.reserved_input = Meter {
            output: 0,
            ..estimate.reserved
        };
        self.output_bound = estimate.output_bound;
        self.reserved_tools = estimate.tools;
    }

    /// Stops counting the call against concurrency, because its caller has left and the call only drains from now on.
    pub(crate) fn stop_counting(&self) {
        self.engine().store.stop_counting(self.hold);
    }

    /// How much longer the upstream is read after the caller has left.
    pub(crate) fn drain_time_left(&self) -> Duration {
        self.record.progress().drain_time_left()
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        self.record.progress().engine()
    }

    /// The outcome of a complete answer, as the caller saw it.
    pub(crate) fn outcome(&self) -> ClientOutcome {
        if self.record.progress().is_gone() {
            ClientOutcome::client_gone()
        } else {
            ClientOutcome::done()
        }
    }

    /// Our cost of this usage on the route that answered, if it is known.
    fn cost(&self, meter: &Meter) -> Option<Box<Cost>> {
        self.route_cost.as_ref().and_then(|cost| cost.of(meter))
    }

    pub(crate) fn update_record(&mut self, update: impl FnOnce(&mut Record)) {
        self.record.update_record(update);
    }

    pub(crate) fn request_id(&self) -> Option<RequestId> {
        self.record.request_id()
    }

    /// The `traceparent` header that identifies the current attempt to the upstream, if the channel sends it.
    pub(crate) fn traceparent(&self, route: &Route) -> Option<HeaderValue> {
        self.record.traceparent(route)
    }
}

/// An extension of the hold that we have requested from the ledger.
#[derive(Debug)]
struct PendingGrowth {
    more: Reservation,
    /// The part of the extension that is taken from the surplus.
    from_surplus: Micro,
    /// The tool calls that the extended hold covers.
    tools: ToolCalls,
}

impl AttemptLog for Admission {
    fn start_attempt(&mut self, route: &Route, share: Option<RouteShare>) {
        self.route_cost.clone_from(&route.cost);
        self.route_share = share;
        self.update_record(|record| record.start_attempt(route, None));
    }

    fn passed_over(&mut self, route: &Route, reason: &str) {
        self.update_record(|record| record.passed_over(route, reason));
    }

    fn attempt_failed(&mut self, failure: &Failure) {
        self.route_share = None;
        self.update_record(|record| record.attempt_failed(failure));
    }
}
