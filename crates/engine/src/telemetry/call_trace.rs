//! Collects the parts of a call's trace that are not in its journal row: the attempts and their times.

use std::sync::Arc;

use http::HeaderValue;

use super::trace_context::{SpanId, TraceContext};
use crate::catalog::Route;

/// The maximum number of attempts, and of passed-over routes, that are kept for one call. Further attempts are only
/// counted.
const NOTES_MAX: usize = 64;

#[derive(Debug)]
pub(crate) struct CallTrace {
    pub(super) context: TraceContext,
    pub(super) attempts: Vec<AttemptTrace>,
    pub(super) passed_over: Vec<PassedOver>,
    /// The number of attempts that were not kept.
    pub(super) attempts_left_out: u64,
    /// The model that the caller named, if another model answered.
    pub(super) named_model: Option<Arc<str>>,
}

/// One attempt on a route. Times count from the arrival of the call.
#[derive(Debug)]
pub(crate) struct AttemptTrace {
    pub(super) span: SpanId,
    pub(super) channel: Arc<str>,
    /// The vendor's name in the conventions of OpenTelemetry.
    pub(super) provider: &'static str,
    /// The upstream's name for the model.
    pub(super) model: Arc<str>,
    pub(super) began_us: u64,
    /// `None` for an attempt that did not fail: it lasts until the end of the call.
    pub(super) failed: Option<FailedAttempt>,
}

/// When an attempt failed, and our code for the failure. The upstream's message is not kept, because it may repeat the
/// request.
#[derive(Debug)]
pub(crate) struct FailedAttempt {
    pub(super) at_us: u64,
    pub(super) code: &'static str,
}

/// A route that was not tried.
#[derive(Debug)]
pub(crate) struct PassedOver {
    pub(super) channel: Arc<str>,
    pub(super) reason: Box<str>,
    pub(super) at_us: u64,
}

impl CallTrace {
    pub(crate) fn new(context: TraceContext) -> Self {
        Self {
            context,
            attempts: Vec::new(),
            passed_over: Vec::new(),
            attempts_left_out: 0,
            named_model: None,
        }
    }

    /// The number of spans that the call has so far.
    pub(super) fn spans(&self) -> u64 {
        u64::try_from(self.attempts.len() + 1).unwrap_or(u64::MAX)
    }

    pub(crate) fn start_attempt(&mut self, route: &Route, now_us: u64) {
        if self.attempts.len() >= NOTES_MAX {
            self.attempts_left_out += 1;
            return;
        }
        self.attempts.push(AttemptTrace {
            span: SpanId::fresh(),
            channel: Arc::clone(&route.channel_name),
            provider: route.channel.spec().preset.provider_name(),
            model: Arc::clone(&route.model),
            began_us: now_us,
            failed: None,
        });
    }

    pub(crate) fn attempt_failed(&mut self, code: &'static str, now_us: u64) {
        if self.attempts_left_out == 0
            && let Some(attempt) = self.attempts.last_mut()
        {
            let at_us = now_us;
            attempt.failed = Some(FailedAttempt { at_us, code });
        }
    }

    pub(crate) fn passed_over(&mut self, route: &Route, reason: &str, now_us: u64) {
        if self.passed_over.len() < NOTES_MAX {
            self.passed_over.push(PassedOver {
                channel: Arc::clone(&route.channel_name),
                reason: reason.into(),
                at_us: now_us,
            });
        }
    }

    /// Records that a model other than `named` has answered the call.
    pub(crate) fn answered_by_another(&mut self, named: Arc<str>) {
        self.named_model = Some(named);
    }

    /// The `traceparent` header that identifies the span of the current attempt to the upstream.
    pub(crate) fn traceparent(&self) -> Option<HeaderValue> {
        let attempt = self
            .attempts
            .last()
            .filter(|_| self.attempts_left_out == 0)?;
        self.context.header(attempt.span)
    }
}
