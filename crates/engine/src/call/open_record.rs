//! The journal row of a call that has not ended. The row is written exactly once.

use std::sync::Arc;

use http::HeaderValue;
use protocol::Failure;
use store::RequestId;

use crate::call::arrival::Arrival;
use crate::call::attempt::AttemptLog;
use crate::call::failed_call::FailedCall;
use crate::call::progress::Progress;
use crate::call::record::{EndedCall, Record};
use crate::call::route_share::RouteShare;
use crate::catalog::Route;

/// A record that must be journaled. If it is dropped before that, it journals that the caller left.
#[derive(Debug)]
pub(crate) struct OpenRecord {
    progress: Arc<Progress>,
    /// `None` once the record is journaled.
    record: Option<Box<Record>>,
}

impl OpenRecord {
    pub(crate) fn begin(progress: Arc<Progress>, arrival: &Arrival) -> Self {
        Self {
            progress,
            record: Some(Box::new(Record::begin(arrival))),
        }
    }

    pub(crate) fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    /// The request id of the call; `None` if it has been journaled.
    pub(crate) fn request_id(&self) -> Option<RequestId> {
        self.record.as_ref().map(|record| record.request_id())
    }

    pub(crate) fn is_open(&self) -> bool {
        self.record.is_some()
    }

    /// Changes the journal row, unless it has been written. Returns the result of `update`.
    pub(crate) fn update_record<T>(&mut self, update: impl FnOnce(&mut Record) -> T) -> Option<T> {
        self.record.as_deref_mut().map(update)
    }

    /// Records that the call asks the ledger for a hold, and returns the call's request id.
    pub(crate) fn ask_ledger(&mut self) -> RequestId {
        let request_id = self.update_record(|record| {
            record.ask_ledger();
            record.request_id()
        });
        request_id.unwrap_or_default()
    }

    /// The `traceparent` header that identifies the current attempt to the upstream, if the channel
    /// sends it.
    pub(crate) fn traceparent(&self, route: &Route) -> Option<HeaderValue> {
        let is_sent = route.channel.spec().sends_traceparent;
        self.record.as_ref().filter(|_| is_sent)?.traceparent()
    }

    /// Journals the call, unless it has been journaled.
    pub(crate) fn journal(&mut self, end: impl FnOnce(Box<Record>) -> EndedCall) {
        if let Some(record) = self.record.take() {
            self.progress.engine().journal(end(record));
        }
    }

    /// Journals a call that is refused before it has a hold.
    pub(crate) fn refuse(mut self, failed: impl Into<FailedCall>) -> FailedCall {
        let failed = failed.into();
        self.journal(|record| record.refused(&failed.failure));
        failed
    }

    /// Journals a call that is never charged.
    pub(crate) fn end_free<T>(mut self, answer: &Result<T, Failure>) {
        self.journal(|record| match answer {
            Ok(_) => record.free(),
            Err(failure) => record.refused(failure),
        });
    }

    /// Takes the record. The new owner must journal it.
    pub(crate) fn take(&mut self) -> Option<Box<Record>> {
        self.record.take()
    }
}

impl AttemptLog for OpenRecord {
    fn start_attempt(&mut self, route: &Route, share: Option<RouteShare>) {
        self.update_record(|record| record.start_attempt(route, share));
    }

    fn passed_over(&mut self, route: &Route, reason: &str) {
        self.update_record(|record| record.passed_over(route, reason));
    }

    fn attempt_failed(&mut self, failure: &Failure) {
        self.update_record(|record| record.attempt_failed(failure));
    }
}

impl Drop for OpenRecord {
    fn drop(&mut self) {
        if self.is_open() {
            self.progress.engine().metrics().clients_gone.inc();
            self.journal(|record| record.left());
        }
    }
}
