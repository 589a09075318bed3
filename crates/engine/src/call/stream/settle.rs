//! Extends the hold of a stream as its output grows, and settles the stream.

use std::task::{Context, Poll};
use std::time::Duration;

use protocol::native::AnswerSummary;
use store::AdmitError;
use tokio::time::Instant;

use super::StreamRelay;
use crate::call::failed_call::refusal;
use crate::call::record::ClientOutcome;
use crate::call::stream_end::Closing;
use crate::call::stream_source::StreamSource;

/// The pause before the ledger is asked again, after it has not extended a hold.
const GROWTH_PAUSE: Duration = Duration::from_secs(1);

impl StreamRelay {
    /// Closes the call before the last bytes are sent, so that the client can see the charge (W13).
    pub(super) fn settle(&mut self, summary: &AnswerSummary) {
        let Some(admission) = self.admission.as_ref() else {
            return;
        };
        if admission.is_undercharged(summary) {
            self.grow_if_needed(summary);
            if self.growing.is_some() {
                self.closing = Some(Box::new(Closing::Complete(summary.clone())));
                return;
            }
        }
        if let Some(admission) = self.admission.take() {
            admission.settle(summary, &ClientOutcome::done());
        }
    }

    /// Whether the output exceeds the hold while an extension is pending. Nothing is read until the ledger answers.
    pub(super) fn is_unpaid(&self) -> bool {
        let is_uncovered = |source: &StreamSource| {
            let admission = self.admission.as_ref();
            admission.is_some_and(|it| it.is_uncovered(source.translator.summary()))
        };
        self.growing.is_some() && self.source.as_ref().is_some_and(is_uncovered)
    }

    /// Asks the ledger to extend the hold if the output comes close to what the hold covers.
    pub(super) fn grow_if_needed(&mut self, summary: &AnswerSummary) {
        if self.growing.is_some() || self.grow_after.is_some_and(|then| Instant::now() < then) {
            return;
        }
        let Some(admission) = self.admission.as_mut().filter(|it| it.wants_more(summary)) else {
            return;
        };
        if let Some(step) = admission.next_step(summary) {
            let store = admission.engine().store.clone();
            self.growing = Some(Box::pin(async move {
                store.extend(step).await?;
                Ok(())
            }));
        }
    }

    /// Checks whether the hold has grown. A refusal ends the stream, because the rest would not be paid for.
    pub(super) fn poll_growth(&mut self, cx: &mut Context<'_>) {
        let Some(growth) = self.growing.as_mut() else {
            return;
        };
        let Poll::Ready(grown) = growth.as_mut().poll(cx) else {
            return;
        };
        self.growing = None;
        if let Some(admission) = self.admission.as_mut() {
            match grown {
                Ok(()) => admission.growth_granted(),
                Err(_) => admission.growth_refused(),
            }
        }
        if let Some(closing) = self.closing.take() {
            self.close(closing, grown.is_ok());
            return self.poll_growth(cx);
        }
        match grown {
            Ok(()) => {}
            Err(error @ AdmitError::Refused { .. }) => {
                // An immediate retry would be refused again.
                self.grow_after = Some(Instant::now() + GROWTH_PAUSE);
                if let Some(source) = self.source.take() {
                    self.fail(source, &refusal(&error));
                }
            }
            // An error of our own is not the caller's fault, so the settlement books what the answer costs (W6).
            Err(error) => {
                let request_id = &*self.request_id;
                tracing::warn!(
                    request_id,
                    ?error,
                    "the hold of a stream could not be extended"
                );
                self.grow_after = Some(Instant::now() + GROWTH_PAUSE);
            }
        }
    }

    /// Settles a stream that has ended. If its hold does not cover the output and may grow, extends the hold first.
    fn close(&mut self, closing: Box<Closing>, may_grow: bool) {
        let summary = closing.summary();
        let admission = self.admission.as_ref();
        if may_grow && admission.is_some_and(|it| it.is_undercharged(summary)) {
            self.grow_if_needed(summary);
            if self.growing.is_some() {
                self.closing = Some(closing);
                return;
            }
        }
        if let Some(admission) = self.admission.take() {
            let (summary, outcome) = closing.into_parts();
            admission.settle(&summary, &outcome);
        }
    }
}
