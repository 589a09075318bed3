//! The hold of a session. It grows step by step, ahead of the usage.
//!
//! Each step books the usage so far (S11), so a node that dies loses one step at most. A frame that the hold does not
//! cover waits for the next step. If that step is refused, the session ends.

use std::future::{Future, pending};
use std::pin::Pin;
use std::time::Duration;

use ledger::{Micro, Refusal};
use protocol::Failure;
use protocol::voice::MeterReading;
use store::{AdmitError, RequestId};
use tokio::time::{Instant, timeout};

use super::pricing::{HoldAhead, SessionPricing};
use crate::call::admission::Admission;
use crate::call::failed_call::refusal;
use crate::call::record::{ClientOutcome, Record};

/// The pause after a step that was not granted.
const STEP_PAUSE: Duration = Duration::from_secs(1);
/// How long a session may wait for a step while the ledger does not answer. Frames beyond its hold wait too.
const LEDGER_WAIT: Duration = Duration::from_secs(10);
/// How long the end of a session waits for the answer to its last step.
const LAST_STEP_WAIT: Duration = Duration::from_secs(2);

pub(super) struct SessionHold {
    admission: Box<Admission>,
    pricing: SessionPricing,
    /// The last reading that the hold covered.
    covered: MeterReading,
    step: Option<RequestedStep>,
    /// When the next step may be requested, after one was not granted.
    retry_at: Option<Instant>,
    /// Set while the ledger does not answer. Steps are then requested with pauses.
    is_ledger_down: bool,
    /// Since when the hold has not covered the usage. If the ledger neither grants nor refuses a step for too long, the
    /// session ends.
    uncovered_since: Option<Instant>,
}

struct RequestedStep {
    urgency: Urgency,
    answer: Pin<Box<dyn Future<Output = Result<Micro, AdmitError>> + Send>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Urgency {
    /// The usage exceeds the hold.
    Now,
    /// The hold will soon be used up.
    Soon,
}

impl SessionHold {
    pub(super) fn new(admission: Box<Admission>, pricing: SessionPricing) -> Self {
        Self {
            admission,
            pricing,
            covered: MeterReading::default(),
            step: None,
            retry_at: None,
            is_ledger_down: false,
            uncovered_since: None,
        }
    }

    /// Whether frames up to this reading may be relayed, because the hold covers them. Requests a step if the hold does
    /// not cover the reading, or soon will not. Fails if the ledger has not answered for too long.
    pub(super) fn covers(&mut self, reading: MeterReading, now: Instant) -> Result<bool, Failure> {
        let is_idle = self.step.is_none();
        let may_request = self.retry_at.is_none_or(|then| now >= then);
        let would_retry = is_idle && may_request && self.retry_at.is_some();
        if reading == self.covered && !would_retry {
            return Ok(true);
        }
        let usage = self.pricing.meter_with_response(reading, HoldAhead::Used);
        let is_covered = self.admission.covers(&usage);
        if is_covered {
            self.covered = reading;
            self.admission.set_session_usage(usage);
            self.uncovered_since = None;
        } else {
            let since = *self.uncovered_since.get_or_insert(now);
            if now.saturating_duration_since(since) >= LEDGER_WAIT {
                return Err(refusal(&AdmitError::Unavailable));
            }
        }
        if is_idle && !is_covered && (may_request || !self.is_ledger_down) {
            self.request_step(reading, Urgency::Now)?;
        } else if is_idle
            && may_request
            && !self.admission.covers(
                &self
                    .pricing
                    .meter_with_response(reading, HoldAhead::HalfStep),
            )
        {
            self.request_step(reading, Urgency::Soon)?;
        }
        Ok(is_covered)
    }

    fn request_step(&mut self, reading: MeterReading, urgency: Urgency) -> Result<(), Failure> {
        let least = match urgency {
            Urgency::Now => HoldAhead::Used,
            Urgency::Soon => HoldAhead::OneUnit,
        };
        let used = self.pricing.meter(reading, HoldAhead::Used);
        let [least, wanted] = [least, HoldAhead::FullStep]
            .map(|more| self.pricing.meter_with_response(reading, more));
        // The price does not fit an amount, so no wallet can pay it.
        let unpaid = Failure::insufficient_quota;
        let step = self.admission.step(&used, &least, &wanted);
        let step = step.ok_or_else(unpaid)?;
        let store = self.admission.engine().store.clone();
        self.retry_at = None;
        self.step = Some(RequestedStep {
            urgency,
            answer: Box::pin(async move { store.step_session(step).await }),
        });
        Ok(())
    }

    /// Waits for the answer to a requested step. Fails if the session must end. If no step was requested, this never
    /// returns.
    pub(super) async fn answered(&mut self) -> Result<(), Failure> {
        let Some(step) = &mut self.step else {
            return pending().await;
        };
        let answer = step.answer.as_mut().await;
        let urgency = step.urgency;
        self.step = None;
        match answer {
            Ok(hold) => {
                self.admission.set_session_hold(hold);
                self.is_ledger_down = false;
                Ok(())
            }
            Err(error) => {
                self.admission.growth_refused();
                self.retry_at = Some(Instant::now() + STEP_PAUSE);
                match &error {
                    AdmitError::Refused { refusal: why, .. } => {
                        if urgency == Urgency::Now || !is_about_money(*why) {
                            return Err(refusal(&error));
                        }
                    }
                    AdmitError::Busy | AdmitError::Unavailable => {
                        let request_id = self.admission.request_id();
                        let request_id = request_id.as_ref().map(RequestId::as_str);
                        tracing::warn!(request_id, ?error, "a session's step could not be booked");
                        self.is_ledger_down = true;
                    }
                }
                Ok(())
            }
        }
    }

    /// Waits for the answer to the last step after the session has ended. Usage is charged up to the hold, and the
    /// journal must show the same charge as the ledger.
    pub(super) async fn finish_step(&mut self) {
        if self.step.is_some() {
            // A refusal no longer matters, because the session has ended.
            let _ = timeout(LAST_STEP_WAIT, self.answered()).await;
        }
    }

    pub(super) fn settle(mut self, reading: MeterReading, outcome: &ClientOutcome) {
        let used = self.pricing.meter(reading.ended(), HoldAhead::Used);
        self.admission.set_session_usage(used);
        self.close(outcome);
    }

    /// Settles the usage that the hold covered. Later frames were not relayed.
    pub(super) fn settle_covered(self, outcome: &ClientOutcome) {
        self.close(outcome);
    }

    fn close(self, outcome: &ClientOutcome) {
        self.admission
            .settle(&protocol::native::AnswerSummary::default(), outcome);
    }

    pub(super) fn admission(&self) -> &Admission {
        &self.admission
    }

    pub(super) fn update_record(&mut self, update: impl FnOnce(&mut Record)) {
        self.admission.update_record(update);
    }
}

/// Whether a step was refused for lack of money. In that case the session ends when its hold is used up. Any other
/// refusal, such as a disabled key, ends it at once.
fn is_about_money(why: Refusal) -> bool {
    matches!(
        why,
        Refusal::InsufficientQuota | Refusal::DebtLimitReached | Refusal::KeyLimitReached
    )
}

#[cfg(test)]
mod tests {
    use ledger::Meter;
    use protocol::Code;

    use super::*;
    use crate::billing::estimate::Estimate;
    use crate::billing::metering::Metering;
    use crate::call::admission::tests::Scene;
    use crate::session::kind::SessionKind;
    use crate::settings::Commit;

    fn seconds(realtime_seconds: u64) -> MeterReading {
        MeterReading {
            realtime_seconds,
            ..MeterReading::default()
        }
    }

    /// One second costs one credit, and the hold covers eight.
    async fn held_for_eight_seconds(scene: &Scene) -> SessionHold {
        let first_step = Meter {
            realtime_seconds: 8,
            ..Meter::default()
        };
        let admission = scene
            .admitted_for(Estimate::voice(first_step, Metering::Session))
            .await;
        let pricing = SessionPricing::new(SessionKind::Realtime, scene.model());
        SessionHold::new(admission, pricing)
    }

    #[tokio::test]
    async fn a_session_does_not_run_on_while_the_ledger_fails() {
        let scene = Scene::new(Commit::Behind).await;
        let mut hold = held_for_eight_seconds(&scene).await;
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(hold.covers(seconds(3), start).unwrap());
        // The ledger does not answer the step that `covers` requests.
        let lost = async { Err(AdmitError::Unavailable) };
        assert!(!hold.covers(seconds(9), start).unwrap());
        hold.step.as_mut().unwrap().answer = Box::pin(lost);
        hold.answered().await.unwrap();
        for waited in [0, 5, 9] {
            assert!(!hold.covers(seconds(9), at(waited)).unwrap(), "{waited} s");
        }
        let failure = hold.covers(seconds(9), at(10)).unwrap_err();
        assert_eq!(failure.code, Code::ServiceUnavailable);
        hold.settle_covered(&ClientOutcome::failed(&failure));
        let (charged, (status, end, journaled)) = scene.charge_and_journal().await;
        assert_eq!((charged, journaled), (3_000_000, 3_000_000));
        assert_eq!((status, end.as_str()), (503, "settled"));
    }

    #[tokio::test]
    async fn a_session_goes_on_when_the_ledger_answers_again() {
        let scene = Scene::new(Commit::Behind).await;
        let mut hold = held_for_eight_seconds(&scene).await;
        let start = Instant::now();
        assert!(!hold.covers(seconds(9), start).unwrap());
        hold.step.as_mut().unwrap().answer = Box::pin(async { Err(AdmitError::Unavailable) });
        hold.answered().await.unwrap();
        let later = start + Duration::from_secs(9);
        assert!(!hold.covers(seconds(9), later).unwrap(), "requests a step");
        hold.answered().await.unwrap();
        assert!(hold.covers(seconds(9), later).unwrap());
        let much_later = later + Duration::from_secs(60);
        assert!(hold.covers(seconds(10), much_later).unwrap());
        hold.settle(seconds(10), &ClientOutcome::done());
        assert_eq!(scene.charge_and_journal().await.0, 10_000_000);
    }

    /// One second costs one credit, and the wallet has ten.
    #[tokio::test]
    async fn a_session_that_ends_during_a_step_is_journaled_as_it_is_charged() {
        for (used, charge) in [(9, 9_000_000), (12, 8_000_000)] {
            let scene = Scene::new(Commit::Behind).await;
            let mut hold = held_for_eight_seconds(&scene).await;
            assert!(!hold.covers(seconds(used), Instant::now()).unwrap());
            hold.finish_step().await;
            hold.settle(seconds(used), &ClientOutcome::done());
            let (charged, (status, end, journaled)) = scene.charge_and_journal().await;
            assert_eq!((charged, journaled), (charge, charge), "{used} s");
            assert_eq!((status, end.as_str()), (200, "settled"));
        }
    }
}
