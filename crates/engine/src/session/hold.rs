//! The money of a session: a hold that goes ahead of what is used, step by step.
//!
//! Each step books what was used so far (S11), so that a node that dies loses one step
//! at most. What cannot be held is not used: frames wait for it, and a refusal ends the session.

use std::future::{Future, pending};
use std::pin::Pin;
use std::time::Duration;

use ledger::{Micro, Refusal};
use protocol::Failure;
use protocol::voice::Reading;
use store::AdmitError;
use tokio::time::Instant;

use super::pricing::{Reach, SessionPricing};
use crate::call::admission::Admission;
use crate::call::failed_call::refusal;
use crate::call::record::{ClientOutcome, Record};

/// Between two steps that were not granted.
const STEP_PAUSE: Duration = Duration::from_secs(1);

pub(super) struct SessionHold {
    admission: Box<Admission>,
    pricing: SessionPricing,
    /// The last reading that was paid for.
    paid: Reading,
    step: Option<Step>,
    /// The last step was not granted: the next one is asked for then.
    again: Option<Instant>,
    /// The ledger does not answer, which is not the caller's fault: the session goes on, and the
    /// next step books it.
    lenient: bool,
}

/// A step that was asked for.
struct Step {
    urgency: Urgency,
    answer: Pin<Box<dyn Future<Output = Result<Micro, AdmitError>> + Send>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Urgency {
    /// More has been used than is held.
    Now,
    /// It will be, before long.
    Soon,
}

impl SessionHold {
    pub(super) fn new(admission: Box<Admission>, pricing: SessionPricing) -> Self {
        Self {
            admission,
            pricing,
            paid: Reading::default(),
            step: None,
            again: None,
            lenient: false,
        }
    }

    /// Whether this much is paid for; has the hold grow where it is not, or will not be for long.
    pub(super) fn covers(&mut self, reading: Reading, now: Instant) -> Result<bool, Failure> {
        let is_idle = self.step.is_none();
        let has_rested = self.again.is_none_or(|then| now >= then);
        let would_retry = is_idle && has_rested && self.again.is_some();
        if reading == self.paid && !would_retry {
            return Ok(true);
        }
        let reach = self.pricing.reach(reading, Reach::Used);
        let is_covered = self.admission.covers(&reach);
        if is_covered || self.lenient {
            self.paid = reading;
            self.admission.set_session_usage(reach);
        }
        if is_idle && !is_covered && (has_rested || !self.lenient) {
            self.ask(reading, Urgency::Now)?;
        } else if is_idle
            && has_rested
            && !self
                .admission
                .covers(&self.pricing.reach(reading, Reach::HalfStep))
        {
            self.ask(reading, Urgency::Soon)?;
        }
        Ok(is_covered || self.lenient)
    }

    fn ask(&mut self, reading: Reading, urgency: Urgency) -> Result<(), Failure> {
        let least = match urgency {
            Urgency::Now => Reach::Used,
            Urgency::Soon => Reach::OneUnit,
        };
        let used = self.pricing.meter(reading, Reach::Used);
        let [least, wanted] =
            [least, Reach::FullStep].map(|more| self.pricing.reach(reading, more));
        // Beyond all money.
        let unpaid = Failure::insufficient_quota;
        let step = self.admission.step(&used, &least, &wanted);
        let step = step.ok_or_else(unpaid)?;
        let store = self.admission.engine().store.clone();
        self.again = None;
        self.step = Some(Step {
            urgency,
            answer: Box::pin(async move { store.step_session(step).await }),
        });
        Ok(())
    }

    /// Returns when a step was answered, with why the session is not paid any further if so. Never
    /// returns when none was asked for.
    pub(super) async fn answered(&mut self) -> Result<(), Failure> {
        let Some(step) = &mut self.step else {
            return pending().await;
        };
        let answer = step.answer.as_mut().await;
        let urgency = step.urgency;
        self.step = None;
        match answer {
            Ok(reach) => {
                self.admission.session_hold_reaches(reach);
                self.lenient = false;
                Ok(())
            }
            Err(error) => {
                self.admission.growth_refused();
                self.again = Some(Instant::now() + STEP_PAUSE);
                match &error {
                    AdmitError::Refused { refusal: why, .. } => {
                        if urgency == Urgency::Now || !is_about_money(*why) {
                            return Err(refusal(&error));
                        }
                    }
                    AdmitError::Busy | AdmitError::Unavailable => {
                        tracing::warn!(?error, "a session's step could not be booked");
                        self.lenient = true;
                    }
                }
                Ok(())
            }
        }
    }

    /// Ends it on all that was used.
    pub(super) fn settle(mut self, reading: Reading, outcome: &ClientOutcome) {
        let used = self.pricing.meter(reading.ended(), Reach::Used);
        self.admission.set_session_usage(used);
        self.close(outcome);
    }

    /// Ends it on what was paid for: what came after was not relayed.
    pub(super) fn settle_paid(self, outcome: &ClientOutcome) {
        self.close(outcome);
    }

    fn close(self, outcome: &ClientOutcome) {
        self.admission
            .settle(&protocol::native::Seen::default(), outcome);
    }

    pub(super) fn admission(&self) -> &Admission {
        &self.admission
    }

    /// Adds to what the journal will say.
    pub(super) fn note(&mut self, note: impl FnOnce(&mut Record)) {
        self.admission.note(note);
    }
}

/// A key or a wallet that may not be used any more ends a session at its next step; a lack of money
/// ends it when the hold is used up.
fn is_about_money(why: Refusal) -> bool {
    matches!(
        why,
        Refusal::InsufficientQuota | Refusal::DebtLimitReached | Refusal::KeyLimitReached
    )
}
