//! The context of a request, from its head to the last byte of its answer.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use engine::{Arrival, CallSlot, Caller, Engine, TraceId, TracedMoment, Traceparent, clock};
use http::StatusCode;
use protocol::Family;
use store::RequestId;

use super::connection::{Connection, ServingGuard};
use super::limits::Limits;
use super::request::MemoryAccount;

/// The context of one request. The response body owns it, so it is dropped when the answer has ended. Boxed, because
/// many functions pass it on.
#[derive(Debug)]
pub(crate) struct RequestContext {
    pub(crate) connection: Arc<Connection>,
    pub(crate) request_id: RequestId,
    pub(crate) family: Family,
    /// The template of the path, for logs and metrics.
    pub(crate) endpoint: &'static str,
    pub(crate) arrived: Instant,
    /// The caller's span, if the caller's `traceparent` is honoured. Boxed, because few requests have one.
    pub(crate) traceparent: Option<Box<Traceparent>>,
    /// The trace of the call, once it has begun. Unset if the call is not traced.
    pub(crate) trace: OnceLock<TraceId>,
    /// The caller, once its key is known. While this value exists, the request counts as a request in flight of the
    /// key.
    pub(crate) caller: OnceLock<Caller>,
    /// Counts the request among the open calls of the node, until the call is settled.
    pub(crate) call_slot: Option<CallSlot>,
    pub(crate) _serving: ServingGuard,
}

impl RequestContext {
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.connection.listener.engine
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.connection.listener.limits
    }

    pub(crate) fn arrival(&self, caller: &Caller) -> Arrival {
        let trace = self.engine().begin_trace(self.traceparent.as_deref());
        if let Some(context) = &trace {
            // A request is one call, so this is set once.
            let _ = self.trace.set(context.trace);
        }
        Arrival {
            key: caller.key.clone(),
            request_id: self.request_id,
            endpoint: self.endpoint,
            at: self.arrived,
            trace,
        }
    }

    pub(crate) fn memory_account<'a>(&'a self, caller: &'a Caller) -> MemoryAccount<'a> {
        MemoryAccount {
            engine: self.engine(),
            caller,
        }
    }

    pub(crate) fn count_answered(&self, status: StatusCode) {
        let tally = &self.connection.tally;
        let after = self.arrived.elapsed();
        tally.answered(self.endpoint, status.as_u16(), after, self.traced_now());
    }

    /// The trace id of the call and the current time, if the call is traced.
    fn traced_now(&self) -> Option<TracedMoment> {
        let trace = *self.trace.get()?;
        let at = clock::now();
        Some(TracedMoment { trace, at })
    }

    /// Counts and logs a panic. The panic hook has already logged its location.
    pub(crate) fn report_panic(&self, what: &str) {
        self.engine().metrics().panics.inc();
        tracing::error!(
            request_id = &*self.request_id,
            endpoint = self.endpoint,
            "{what} panicked"
        );
    }
}

impl Drop for RequestContext {
    fn drop(&mut self) {
        let tally = &self.connection.tally;
        tally.ended(self.endpoint, self.arrived.elapsed(), self.traced_now());
    }
}
