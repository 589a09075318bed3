//! Fallback models, which may answer if the model that the caller named cannot (`docs/decisions/070`).

use std::sync::Arc;

use ledger::Reservation;
use protocol::Failure;

use super::Call;
use crate::call::admission::{Admission, RefusedAdmission};
use crate::call::kind::{CallKind, Prepared};
use crate::call::open_record::OpenRecord;

impl<K: CallKind> Call<K> {
    /// Takes the share of the first attempt from the limits of its route. If all routes of the model are at their
    /// limits, tries the routes of its fallbacks. Nothing is held yet.
    pub(super) fn reserve_route(&mut self, record: &mut OpenRecord) -> Result<(), Failure> {
        while let Err(failure) = self
            .prepared
            .plan
            .reserve(self.prepared.estimate.tokens(), record)
        {
            self.substitute(failure, record)?;
        }
        Ok(())
    }

    /// Continues with the next fallback, before anything is held. If there is none, the caller gets the failure of the
    /// model that they named.
    pub(super) fn substitute(
        &mut self,
        failure: Failure,
        record: &mut OpenRecord,
    ) -> Result<(), Failure> {
        let first_failure = self.prepared.of_named_model.get_or_insert(failure);
        let Some(fallback) = self.prepared.fallbacks.pop_front() else {
            return Err(first_failure.clone());
        };
        let before = Arc::clone(self.prepared.plan.model());
        self.take_over(*fallback);
        let model = &self.prepared.plan.model().id;
        record.update_record(|record| record.fall_back(&before.id, model));
        Ok(())
    }

    /// Asks for a hold that covers the most expensive model of the call. If the ledger refuses that amount, asks for a
    /// hold for the current model only; the call then has no fallbacks.
    pub(super) async fn admit(
        &mut self,
        record: OpenRecord,
    ) -> Result<Box<Admission>, RefusedAdmission> {
        let (key, model) = (&self.arrival.key, self.prepared.plan.model());
        let estimate = &self.prepared.estimate;
        let debt_limit = self.progress.engine().settings.debt_limit;
        let mut others: Option<Reservation> = None;
        // A fallback whose price cannot be computed for this call is left out.
        self.prepared.fallbacks.retain(|fallback| {
            let price = &fallback.plan.model().price;
            let ask = fallback.estimate.reservation(price, debt_limit);
            if let Ok(ask) = &ask {
                others = Some(others.map_or(*ask, |so_far| so_far.covering_both(ask)));
            }
            ask.is_ok()
        });
        if others.is_none() {
            return Admission::request(key, model, estimate, record).await;
        }
        let refused = match Admission::request_covering(key, model, estimate, others, record).await
        {
            Ok(admission) => return Ok(admission),
            // A smaller hold does not help if the ledger is busy or unavailable.
            Err(refused) if !refused.is_about_amounts() => return Err(refused),
            Err(refused) => refused,
        };
        self.prepared.fallbacks.clear();
        Admission::request(key, model, estimate, refused.record).await
    }

    /// Continues with the next fallback, if this model has no route left, no failure has stopped the call, and the
    /// caller has not left.
    pub(super) fn fall_back(&mut self, admission: &mut Admission) -> bool {
        if !self.prepared.plan.is_exhausted() || self.progress.is_gone() {
            return false;
        }
        let Some(fallback) = self.prepared.fallbacks.pop_front() else {
            return false;
        };
        self.take_over(*fallback);
        admission.fall_back(
            self.prepared.plan.model(),
            std::mem::take(&mut self.prepared.estimate),
        );
        true
    }

    fn take_over(&mut self, fallback: Prepared<K>) {
        let before = std::mem::replace(&mut self.prepared.plan, fallback.plan);
        self.prepared
            .plan
            .continue_after(&before, fallback.estimate.tokens());
        self.prepared.kind = fallback.kind;
        self.prepared.estimate = fallback.estimate;
        self.encoded = None;
    }
}
