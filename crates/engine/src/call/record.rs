//! Collects the journal row of a call while it runs.

use std::sync::Arc;
use std::time::Instant;

use ledger::Micro;
use protocol::json::redact::redact;
use protocol::{ByteQueue, Failure};
use store::{BODY_BYTES_MAX, HoldId, JournalRow, MeterText, RequestId};

use crate::call::arrival::Arrival;
use crate::catalog::Route;
use crate::clock;

/// Once the notes are this long, no more messages of upstreams are added.
const NOTES_BYTES_MAX: usize = 8 << 10;

/// How a call ended, as the client saw it.
#[derive(Debug, Clone)]
pub(crate) struct ClientOutcome {
    status: u16,
    code: Option<&'static str>,
}

impl ClientOutcome {
    /// The answer was complete.
    pub(crate) fn done() -> Self {
        Self {
            status: 200,
            code: None,
        }
    }

    /// The client got an error, before the answer or within the stream.
    pub(crate) fn failed(failure: &Failure) -> Self {
        Self {
            status: failure.status(),
            code: Some(failure.code.as_str()),
        }
    }

    /// The client left. Operators know 499 from other servers.
    pub(crate) fn client_gone() -> Self {
        Self {
            status: 499,
            code: Some("client_gone"),
        }
    }
}

/// What a call was charged, and for what.
#[derive(Debug)]
pub(crate) struct Settlement {
    pub(crate) charge: Micro,
    pub(crate) meter: MeterText,
    /// What the call cost us, if that is known.
    pub(crate) cost: Option<Micro>,
}

/// The journal row of one call, while it is being collected.
#[derive(Debug)]
pub(crate) struct Record {
    row: JournalRow,
    arrived: Instant,
    route_notes: String,
    /// When the ledger was asked, counted from the arrival.
    asked_us: u64,
    /// The beginning of the answer, if bodies are kept.
    answer: Option<Vec<u8>>,
}

impl Record {
    pub(crate) fn begin(arrival: &Arrival) -> Self {
        let row = JournalRow {
            request_id: arrival.request_id,
            wallet: Some(arrival.key.wallet),
            key: Some(arrival.key.key),
            endpoint: arrival.endpoint.into(),
            ..JournalRow::default()
        };
        Self {
            row,
            arrived: arrival.at,
            route_notes: String::new(),
            asked_us: 0,
            answer: None,
        }
    }

    pub(crate) fn request_id(&self) -> RequestId {
        self.row.request_id
    }

    /// The request names its model.
    pub(crate) fn set_model(&mut self, model: impl Into<Arc<str>>, stream: bool) {
        self.row.model = model.into();
        self.row.stream = stream;
    }

    /// The ledger is being asked for a hold.
    pub(crate) fn ask_ledger(&mut self) {
        self.asked_us = self.elapsed_us();
    }

    /// The ledger has admitted the call.
    pub(crate) fn admitted(&mut self, hold: HoldId) {
        let now_us = self.elapsed_us();
        self.row.hold = Some(hold);
        self.row.timings.admitted_us = Some(now_us);
        self.row.timings.queued_us = Some(now_us.saturating_sub(self.asked_us));
    }

    /// Keeps the redacted body of the request. From here on the answer is kept too.
    pub(crate) fn keep_bodies(&mut self, request: &[u8]) {
        self.row.request_body = Some(redact(request, BODY_BYTES_MAX).into());
        self.answer = Some(Vec::new());
    }

    /// Keeps the redacted body of the request alone; the answer is not readable text.
    pub(crate) fn keep_request(&mut self, request: &[u8]) {
        self.row.request_body = Some(redact(request, BODY_BYTES_MAX).into());
    }

    /// Keeps the bytes of `out` behind the first `from`, if bodies are kept.
    pub(crate) fn keep_answer(&mut self, out: &ByteQueue, from: usize) {
        if let Some(answer) = &mut self.answer {
            out.peek(from, BODY_BYTES_MAX, answer);
        }
    }

    /// A route is being tried.
    pub(crate) fn start_attempt(&mut self, route: &Route) {
        self.row.channel = Some(Arc::clone(&route.channel_name));
        self.row.upstream_model = Some(Arc::clone(&route.model));
    }

    /// The last attempt failed.
    pub(crate) fn attempt_failed(&mut self, failure: &Failure) {
        if !self.route_notes.is_empty() {
            self.route_notes.push_str("; ");
        }
        let channel = self.row.channel.take();
        self.route_notes
            .push_str(channel.as_deref().unwrap_or_default());
        self.route_notes.push_str(": ");
        self.route_notes.push_str(failure.code.as_str());
        if let Some(cause) = &failure.cause {
            self.route_notes.push_str(" (");
            self.route_notes.push_str(cause);
            self.route_notes.push(')');
        }
    }

    /// Notes a message of the upstream that the client does not see.
    pub(crate) fn note_withheld(&mut self, words: &str) {
        if self.route_notes.len() > NOTES_BYTES_MAX {
            return;
        }
        if !self.route_notes.is_empty() {
            self.route_notes.push_str("; ");
        }
        self.route_notes.push_str("said: ");
        self.route_notes.push_str(&words.replace("; ", ", "));
    }

    /// The head of the upstream's response has arrived.
    pub(crate) fn upstream_answered(&mut self) {
        self.row.timings.upstream_us = Some(self.elapsed_us());
    }

    /// The answer starts to leave. `dropped` names the members that its request had to leave out.
    pub(crate) fn start_answer(&mut self, dropped: Option<&str>) {
        self.row.dropped_params = dropped.map(Into::into);
        self.row.timings.first_byte_us = Some(self.elapsed_us());
    }

    /// The call was refused before it had a hold.
    pub(crate) fn refused(self, failure: &Failure) -> JournalRow {
        self.ended(&ClientOutcome::failed(failure), None)
    }

    /// The call was answered and is free of charge.
    pub(crate) fn free(self) -> JournalRow {
        self.ended(&ClientOutcome::done(), None)
    }

    /// The hold was released.
    pub(crate) fn released(self, outcome: &ClientOutcome) -> JournalRow {
        self.ended(outcome, Some("released"))
    }

    /// The hold was settled.
    pub(crate) fn settled(mut self, outcome: &ClientOutcome, settlement: Settlement) -> JournalRow {
        self.row.charge = settlement.charge;
        self.row.meter = Some(settlement.meter);
        self.row.cost = settlement.cost;
        self.ended(outcome, Some("settled"))
    }

    /// The call has opened a task, and the hold now belongs to the task.
    pub(crate) fn opened(self) -> JournalRow {
        self.ended(&ClientOutcome::done(), None)
    }

    /// The call has opened a task that failed at once; `end` says how its hold was closed.
    pub(crate) fn ended_early(self, outcome: &ClientOutcome, end: &'static str) -> JournalRow {
        self.ended(outcome, Some(end))
    }

    fn ended(mut self, outcome: &ClientOutcome, end: Option<&'static str>) -> JournalRow {
        self.row.timings.total_us = self.elapsed_us();
        self.row.at = clock::now();
        self.row.status = outcome.status;
        self.row.code = outcome.code.map(Into::into);
        self.row.outcome = end.map(Into::into);
        if !self.route_notes.is_empty() {
            self.row.route_notes = Some(self.route_notes.into());
        }
        if let Some(answer) = self.answer.filter(|answer| !answer.is_empty()) {
            self.row.response_body = Some(redact(&answer, BODY_BYTES_MAX).into());
        }
        self.row
    }

    fn elapsed_us(&self) -> u64 {
        u64::try_from(self.arrived.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}
