//! Collects the journal row of a call while it runs.

use std::sync::Arc;
use std::time::Instant;

use http::HeaderValue;
use ledger::Micro;
use protocol::{ByteQueue, Failure, redact};
use store::{BODY_BYTES_MAX, End, HoldId, JournalRow, MeterText, RequestId};

use crate::call::arrival::Arrival;
use crate::call::attempt::AttemptLog;
use crate::call::route_share::RouteShare;
use crate::catalog::Route;
use crate::clock;
use crate::telemetry::CallTrace;

/// When the notes are longer than this, upstream messages and passed-over routes are left out.
const NOTES_BYTES_MAX: usize = 8 << 10;

/// Follows the name of a channel or fallback model that was not tried, in the notes of a journal row.
pub const PASSED_OVER: &str = "passed over";

/// Separates the notes about routes in a journal row.
pub const NOTE_SEPARATOR: &str = "; ";

/// The beginning of a note about a fallback, which names both models.
pub const FALLBACK: &str = "fallback: ";

/// The code of calls whose client left.
const CLIENT_GONE: &str = "client_gone";

#[derive(Debug, Clone)]
pub(crate) struct ClientOutcome {
    status: u16,
    code: Option<&'static str>,
    /// Whether the call failed for a reason that no upstream has caused.
    is_own_failure: bool,
}

impl ClientOutcome {
    /// The answer was complete.
    pub(crate) fn done() -> Self {
        Self {
            status: 200,
            code: None,
            is_own_failure: false,
        }
    }

    /// The client got an error, before the answer or within the stream.
    pub(crate) fn failed(failure: &Failure) -> Self {
        Self {
            status: failure.status(),
            code: Some(failure.code.as_str()),
            is_own_failure: !failure.code.is_of_upstream(),
        }
    }

    fn is_failure(&self) -> bool {
        self.code.is_some_and(|code| code != CLIENT_GONE)
    }

    /// The client left. The status is 499, a common convention for this.
    pub(crate) fn client_gone() -> Self {
        Self {
            status: 499,
            code: Some(CLIENT_GONE),
            is_own_failure: false,
        }
    }
}

/// The charge of a call and the usage that it is for.
#[derive(Debug)]
pub(crate) struct Settlement {
    pub(crate) charge: Micro,
    pub(crate) meter: MeterText,
    /// Our cost of the call, if it is known.
    pub(crate) cost: Option<Micro>,
}

impl Settlement {
    /// The settlement of a hold; `None` if the call ends free of charge.
    pub(crate) fn of(end: &End) -> Option<Self> {
        match end {
            End::Settled {
                charge,
                meter,
                cost,
                ..
            } => Some(Self {
                charge: *charge,
                meter: meter.clone(),
                cost: cost.as_deref().map(|cost| cost.amount),
            }),
            End::Released | End::Abandoned => None,
        }
    }
}

/// The journal row and the trace of a call that is over.
#[derive(Debug)]
pub(crate) struct EndedCall {
    pub(crate) row: Box<JournalRow>,
    pub(crate) trace: Option<Box<CallTrace>>,
}

/// The journal row of one call while it is collected.
#[derive(Debug)]
pub(crate) struct Record {
    /// Boxed, because many functions pass it on when the call ends.
    row: Box<JournalRow>,
    arrived: Instant,
    route_notes: String,
    /// Notes about fallback models that cannot serve this request. They matter only if the named model fails.
    unfit_fallbacks: String,
    /// The channel of the last failed attempt. If the call fails, it counts as a failure of this channel.
    failed_channel: Option<Arc<str>>,
    /// The fallback model that may answer instead of the model that the caller named.
    fallback: Option<Arc<str>>,
    /// When the ledger was asked for a hold, in microseconds since the arrival.
    asked_us: u64,
    /// The beginning of the answer, if bodies are kept.
    answer: Option<Vec<u8>>,
    trace: Option<Box<CallTrace>>,
}

impl Record {
    pub(crate) fn begin(arrival: &Arrival) -> Self {
        let row = Box::new(JournalRow {
            request_id: arrival.request_id,
            wallet: Some(arrival.key.wallet),
            key: Some(arrival.key.key),
            endpoint: arrival.endpoint.into(),
            ..JournalRow::default()
        });
        Self {
            row,
            arrived: arrival.at,
            route_notes: String::new(),
            unfit_fallbacks: String::new(),
            failed_channel: None,
            fallback: None,
            asked_us: 0,
            answer: None,
            trace: arrival
                .trace
                .as_deref()
                .map(|it| Box::new(CallTrace::new(*it))),
        }
    }

    pub(crate) fn request_id(&self) -> RequestId {
        self.row.request_id
    }

    pub(crate) fn set_model(&mut self, model: impl Into<Arc<str>>, stream: bool) {
        self.row.model = model.into();
        self.row.stream = stream;
    }

    pub(crate) fn ask_ledger(&mut self) {
        self.asked_us = self.elapsed_us();
    }

    pub(crate) fn admitted(&mut self, hold: HoldId) {
        let now_us = self.elapsed_us();
        self.row.hold = Some(hold);
        self.row.timings.admitted_us = Some(now_us);
        self.row.timings.queued_us = Some(now_us.saturating_sub(self.asked_us));
    }

    /// Keeps the redacted body of the request. From now on the answer is kept too.
    pub(crate) fn keep_bodies(&mut self, request: &[u8]) {
        self.row.request_body = Some(redact(request, BODY_BYTES_MAX).into());
        self.answer = Some(Vec::new());
    }

    /// Keeps only the redacted body of the request, because the answer is not readable text.
    pub(crate) fn keep_request(&mut self, request: &[u8]) {
        self.row.request_body = Some(redact(request, BODY_BYTES_MAX).into());
    }

    /// Keeps the bytes of `out` from position `from` on, if bodies are kept.
    pub(crate) fn keep_answer(&mut self, out: &ByteQueue, from: usize) {
        if let Some(answer) = &mut self.answer {
            out.peek(from, BODY_BYTES_MAX, answer);
        }
    }

    /// Adds a note with an upstream message that the client does not see.
    pub(crate) fn note_withheld(&mut self, words: &str) {
        if self.route_notes.len() > NOTES_BYTES_MAX {
            return;
        }
        self.separate_notes();
        self.route_notes.push_str("said: ");
        self.add_foreign_text(words);
    }

    /// Records that the call continues with another model, because the previous one has no route left.
    pub(crate) fn fall_back(&mut self, before: &str, to: &Arc<str>) {
        self.fallback = Some(Arc::clone(to));
        self.add_unfit_fallbacks();
        self.separate_notes();
        self.route_notes.push_str(FALLBACK);
        self.route_notes.push_str(before);
        self.route_notes.push_str(" to ");
        self.route_notes.push_str(to);
    }

    /// Records that a fallback model cannot serve this request.
    pub(crate) fn fallback_unfit(&mut self, model: &str, failure: &Failure) {
        let notes = &mut self.unfit_fallbacks;
        if !notes.is_empty() {
            notes.push_str(NOTE_SEPARATOR);
        }
        notes.push_str(model);
        notes.push_str(": ");
        notes.push_str(PASSED_OVER);
        notes.push_str(" (");
        notes.push_str(failure.code.as_str());
        notes.push(')');
    }

    /// Records that the head of the upstream's response has arrived.
    pub(crate) fn upstream_answered(&mut self) {
        self.row.timings.upstream_us = Some(self.elapsed_us());
    }

    /// Records that the answer begins. `dropped` names the members of the request that could not be converted.
    pub(crate) fn start_answer(&mut self, dropped: Option<&str>) {
        self.row.dropped_params = dropped.map(Into::into);
        // A stream may have begun before its upstream.
        let now_us = self.elapsed_us();
        self.row.timings.first_byte_us.get_or_insert(now_us);
    }

    /// Marks the attempt in the trace as failed, because the answer broke off after it had begun. The row keeps its
    /// channel, and gets the failure when the call ends.
    pub(crate) fn answer_broke(&mut self, failure: &Failure) {
        self.note_trace(|trace, now_us| trace.attempt_failed(failure.code.as_str(), now_us));
    }

    /// Ends the record of a call that was refused before it had a hold.
    pub(crate) fn refused(self, failure: &Failure) -> EndedCall {
        self.ended(&ClientOutcome::failed(failure), None)
    }

    /// Ends the record of a call whose caller left before it had a hold, or before a free answer.
    pub(crate) fn left(self) -> EndedCall {
        self.ended(&ClientOutcome::client_gone(), None)
    }

    /// Ends the record of a call that was answered without a charge.
    pub(crate) fn free(self) -> EndedCall {
        self.ended(&ClientOutcome::done(), None)
    }

    /// Ends the record of a call whose hold was released.
    ///
    /// If we have refused the answer of a channel, for example because the ledger failed, the row names no channel: the
    /// error is not the channel's, and nothing was charged for it.
    pub(crate) fn released(mut self, outcome: &ClientOutcome) -> EndedCall {
        if outcome.is_own_failure
            && let Some(channel) = self.row.channel.take()
        {
            self.note_attempt(&channel, outcome.code.unwrap_or_default());
        }
        self.ended(outcome, Some("released"))
    }

    /// Ends the record of a call whose hold was settled.
    pub(crate) fn settled(mut self, outcome: &ClientOutcome, settlement: Settlement) -> EndedCall {
        // The row names the model whose price was charged.
        if let Some(model) = self.fallback.take() {
            let named = std::mem::replace(&mut self.row.model, model);
            self.note_trace(|trace, _| trace.answered_by_another(named));
        }
        self.row.charge = settlement.charge;
        self.row.meter = Some(settlement.meter);
        self.row.cost = settlement.cost;
        self.ended(outcome, Some("settled"))
    }

    /// Ends the record of a call that has created a task. The hold now belongs to the task.
    pub(crate) fn opened(self) -> EndedCall {
        self.ended(&ClientOutcome::done(), None)
    }

    /// Ends the record of a call whose task failed at once; `end` says how its hold was closed.
    pub(crate) fn ended_early(self, outcome: &ClientOutcome, end: &'static str) -> EndedCall {
        self.ended(outcome, Some(end))
    }

    fn ended(mut self, outcome: &ClientOutcome, end: Option<&'static str>) -> EndedCall {
        self.row.timings.total_us = self.elapsed_us();
        self.row.at = clock::now();
        self.row.status = outcome.status;
        self.row.code = outcome.code.map(Into::into);
        self.row.outcome = end.map(Into::into);
        // A failed call counts for the channel of its last attempt. A call that fails before any attempt counts for no
        // channel, and neither does a client that left between two attempts.
        if outcome.is_failure() && self.row.channel.is_none() {
            self.row.channel = self.failed_channel.take();
            if self.row.channel.is_some() {
                self.add_unfit_fallbacks();
            }
        }
        if !self.route_notes.is_empty() {
            self.row.route_notes = Some(self.route_notes.into());
        }
        if let Some(answer) = self.answer.filter(|answer| !answer.is_empty()) {
            self.row.response_body = Some(redact(&answer, BODY_BYTES_MAX).into());
        }
        EndedCall {
            row: self.row,
            trace: self.trace,
        }
    }

    /// The `traceparent` header that identifies the span of the current attempt to the upstream, if the call is traced.
    pub(crate) fn traceparent(&self) -> Option<HeaderValue> {
        self.trace.as_ref()?.traceparent()
    }

    /// Changes the trace, if the call has one. `note` also gets the time since the arrival.
    fn note_trace(&mut self, note: impl FnOnce(&mut CallTrace, u64)) {
        let arrived = self.arrived;
        if let Some(trace) = &mut self.trace {
            note(trace, elapsed_us(arrived));
        }
    }

    /// Adds a note about an attempt that failed.
    fn note_attempt(&mut self, channel: &str, code: &str) {
        self.separate_notes();
        self.route_notes.push_str(channel);
        self.route_notes.push_str(": ");
        self.route_notes.push_str(code);
    }

    fn separate_notes(&mut self) {
        if !self.route_notes.is_empty() {
            self.route_notes.push_str(NOTE_SEPARATOR);
        }
    }

    /// Adds a text that others wrote. It must not contain the separator, because readers split the notes there.
    fn add_foreign_text(&mut self, text: &str) {
        self.route_notes
            .push_str(&text.replace(NOTE_SEPARATOR, ", "));
    }

    fn add_unfit_fallbacks(&mut self) {
        if !self.unfit_fallbacks.is_empty() {
            self.separate_notes();
            self.route_notes
                .push_str(&std::mem::take(&mut self.unfit_fallbacks));
        }
    }

    fn elapsed_us(&self) -> u64 {
        elapsed_us(self.arrived)
    }
}

fn elapsed_us(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}

impl AttemptLog for Record {
    /// Drops the share, because a record does not know the usage of the call. The request still counts against the
    /// limits.
    fn start_attempt(&mut self, route: &Route, _share: Option<RouteShare>) {
        self.row.channel = Some(Arc::clone(&route.channel_name));
        self.row.upstream_model = Some(Arc::clone(&route.model));
        self.note_trace(|trace, now_us| trace.start_attempt(route, now_us));
    }

    fn passed_over(&mut self, route: &Route, reason: &str) {
        self.note_trace(|trace, now_us| trace.passed_over(route, reason, now_us));
        if self.route_notes.len() > NOTES_BYTES_MAX {
            return;
        }
        self.separate_notes();
        self.route_notes.push_str(&route.channel_name);
        self.route_notes.push_str(": ");
        self.route_notes.push_str(PASSED_OVER);
        self.route_notes.push_str(" (");
        self.route_notes.push_str(reason);
        self.route_notes.push(')');
    }

    fn attempt_failed(&mut self, failure: &Failure) {
        self.note_trace(|trace, now_us| trace.attempt_failed(failure.code.as_str(), now_us));
        let channel = self.row.channel.take();
        let name = channel.as_deref().unwrap_or_default();
        self.note_attempt(name, failure.code.as_str());
        // A failure of our own does not count for the channel.
        self.failed_channel = channel.filter(|_| failure.code.is_of_upstream());
        if let Some(cause) = &failure.cause {
            self.route_notes.push_str(" (");
            self.add_foreign_text(cause);
            self.route_notes.push(')');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record {
            row: Box::default(),
            arrived: Instant::now(),
            route_notes: String::new(),
            unfit_fallbacks: String::new(),
            failed_channel: None,
            fallback: None,
            asked_us: 0,
            answer: None,
            trace: None,
        }
    }

    fn notes_of(ended: &EndedCall) -> Vec<&str> {
        let notes = ended.row.route_notes.as_deref();
        notes
            .iter()
            .flat_map(|notes| notes.split(NOTE_SEPARATOR))
            .collect()
    }

    #[test]
    fn an_upstreams_text_makes_no_note_of_its_own() {
        let mut record = record();
        record.row.channel = Some("one".into());
        let mut failure = Failure::upstream_error();
        failure.cause = Some("busy; fallback: maker/a to maker/b; two: ok".into());
        record.attempt_failed(&failure);
        let ended = record.refused(&failure);
        assert_eq!(
            notes_of(&ended),
            ["one: upstream_error (busy, fallback: maker/a to maker/b, two: ok)"]
        );
    }

    #[test]
    fn a_failure_of_our_own_does_not_count_for_the_channel() {
        let own = Failure::unavailable("The service has no memory left for this answer.");
        let theirs = Failure::upstream_error();
        for (failure, channel) in [(&own, None), (&theirs, Some("one"))] {
            let mut record = record();
            record.row.channel = Some("one".into());
            record.attempt_failed(failure);
            let ended = record.released(&ClientOutcome::failed(failure));
            assert_eq!(ended.row.channel.as_deref(), channel, "{failure}");
            let note = format!("one: {}", failure.code);
            assert_eq!(notes_of(&ended), [note], "{failure}");
        }
        // The upstream's answer was good, but the ledger could not confirm the hold.
        let mut answered = record();
        answered.row.channel = Some("one".into());
        let ended = answered.released(&ClientOutcome::failed(&own));
        assert_eq!(ended.row.channel, None);
        assert_eq!(notes_of(&ended), ["one: service_unavailable"]);
        // A charged call keeps its channel.
        let mut cut = record();
        cut.row.channel = Some("one".into());
        let settlement = Settlement {
            charge: Micro::new(1),
            meter: MeterText::from(&ledger::Meter::default()),
            cost: None,
        };
        let ended = cut.settled(&ClientOutcome::failed(&own), settlement);
        assert_eq!(ended.row.channel.as_deref(), Some("one"));
        // A refusal for lack of a route does not clear a channel that has failed before.
        let mut limited = record();
        limited.row.channel = Some("one".into());
        limited.attempt_failed(&theirs);
        let refusal = Failure::rate_limit_exceeded("The model is at its limit.");
        let ended = limited.released(&ClientOutcome::failed(&refusal));
        assert_eq!(ended.row.channel.as_deref(), Some("one"));
    }

    #[test]
    fn a_fallback_that_cannot_serve_is_noted_only_if_the_named_model_fails() {
        let unfit = Failure::unsupported_parameter("temperature", "It is fixed.");
        let with_unfit = || {
            let mut record = record();
            record.fallback_unfit("maker/b", &unfit);
            record.row.channel = Some("one".into());
            record
        };
        let passed_over = "maker/b: passed over (unsupported_parameter)";
        assert_eq!(notes_of(&with_unfit().free()), [""; 0]);
        // Refused before any attempt, for example because the wallet is empty.
        let mut refused = with_unfit();
        refused.row.channel = None;
        assert_eq!(notes_of(&refused.refused(&unfit)), [""; 0]);

        let failure = Failure::upstream_error();
        let mut failed = with_unfit();
        failed.attempt_failed(&failure);
        let failed = failed.refused(&failure);
        assert_eq!(notes_of(&failed), ["one: upstream_error", passed_over]);

        let mut continued = with_unfit();
        continued.attempt_failed(&failure);
        continued.fall_back("maker/a", &"maker/c".into());
        assert_eq!(
            notes_of(&continued.free()),
            [
                "one: upstream_error",
                passed_over,
                "fallback: maker/a to maker/c"
            ]
        );
    }
}
