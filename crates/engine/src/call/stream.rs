//! Relays a stream from the upstream to the client.
//!
//! The relay is the response body: the server polls it, and it polls the upstream. This gives backpressure. When a
//! client leaves, the body is dropped, which is a normal end.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use protocol::{ByteQueue, Failure};
use store::RequestId;
use tokio::time::Instant;
use upstream::{CallError, CallErrorKind};

use crate::call::admission::Admission;
use crate::call::drain::{drain, settle_grown};
use crate::call::kind::StreamPolicy;
use crate::call::record::ClientOutcome;
use crate::call::route_failure::broken_failure;
use crate::call::shutdown::ShutdownWatch;
use crate::call::stream_end::{Closing, StreamEnd};
use crate::call::stream_source::{Growth, StreamSource};
use crate::failures::{Aborted, no_memory_for};
use crate::memory_budget::MemoryShare;

pub(in crate::call) mod keep_alive;
mod settle;
#[cfg(test)]
mod tests;

use keep_alive::KeepAliveTimer;

/// The maximum number of bytes that wait for a slow reader. After that, we stop reading from the upstream.
const OUT_BYTES_MAX: usize = 16 << 10;

/// A stream that is being relayed, with the hold that pays for it.
pub struct StreamRelay {
    /// `None` when the upstream has ended or we need no more bytes of it.
    source: Option<StreamSource>,
    out: ByteQueue,
    /// The memory that is charged for `out` after the source has ended.
    share: Option<MemoryShare>,
    /// `None` when the call is closed.
    admission: Option<Box<Admission>>,
    policy: StreamPolicy,
    request_id: RequestId,
    /// Whether the bytes of the last wake-up are unsent. The bytes of the next wake-up can then join the same write.
    fresh: bool,
    end: StreamEnd,
    growing: Option<Growth>,
    /// A stream that has ended but is not settled yet, because it is unknown whether its hold has grown.
    closing: Option<Box<Closing>>,
    /// After the ledger has not extended the hold, it is not asked again before this time.
    grow_after: Option<Instant>,
    keep_alive: KeepAliveTimer,
    shutdown: ShutdownWatch,
}

impl std::fmt::Debug for StreamRelay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamRelay")
            .field("request_id", &self.request_id)
            .finish_non_exhaustive()
    }
}

impl StreamRelay {
    pub(crate) fn new(
        source: StreamSource,
        out: ByteQueue,
        admission: Box<Admission>,
        policy: StreamPolicy,
        request_id: RequestId,
    ) -> Self {
        let summary = source.translator.summary();
        let is_due = summary.ended || admission.wants_more(summary);
        let summary = is_due.then(|| summary.clone());
        let mut relay = Self {
            source: Some(source),
            fresh: !out.is_empty(),
            out,
            share: None,
            admission: Some(admission),
            policy,
            request_id,
            end: StreamEnd::Clean,
            growing: None,
            closing: None,
            grow_after: None,
            keep_alive: KeepAliveTimer::default(),
            shutdown: ShutdownWatch::default(),
        };
        // A short answer may end with its first read, before anything is relayed.
        match summary {
            Some(summary) if summary.ended => relay.settle(&summary),
            Some(summary) => relay.grow_if_needed(&summary),
            None => {}
        }
        relay
    }

    /// Ends the stream with a failure. Bytes that are already in the queue are sent first.
    pub(crate) fn break_off(&mut self, failure: &Failure) {
        if let Some(source) = self.source.take() {
            self.note_broken(failure);
            self.fail(source, failure);
        }
    }

    /// Whether the call is closed. The last bytes may not have been sent yet.
    pub(crate) fn is_settled(&self) -> bool {
        self.admission.is_none()
    }

    /// The next bytes for the client.
    ///
    /// All bytes of one wake-up are returned as one piece, because hyper writes one HTTP chunk per frame, and many
    /// small writes would cost more than everything else. So when the upstream has nothing more right now, the relay
    /// lets the connection's task run once and polls again before it returns. It never waits for bytes that have not
    /// arrived.
    pub(crate) fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Aborted>>> {
        self.poll_growth(cx);
        if self.holds_bytes_back() {
            return Poll::Pending;
        }
        self.end_with_node();
        while self.out.len() < OUT_BYTES_MAX {
            if self.is_unpaid() {
                if self.out.is_empty() && self.watch_ending(cx) {
                    self.end_with_node();
                }
                break;
            }
            let Some(source) = self.source.as_mut() else {
                break;
            };
            match source.upstream.poll_next(cx) {
                Poll::Ready(next) => {
                    self.fresh = true;
                    self.take(next);
                    self.poll_growth(cx);
                    if self.holds_bytes_back() {
                        return Poll::Pending;
                    }
                }
                Poll::Pending if self.fresh => {
                    self.fresh = false;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                // The end mark has arrived, so the client need not wait until the upstream closes the connection.
                Poll::Pending if source.translator.summary().ended => {
                    self.share = source.share.take();
                    self.source = None;
                }
                Poll::Pending if !self.out.is_empty() => break,
                Poll::Pending if self.watch_ending(cx) => self.end_with_node(),
                Poll::Pending => {
                    ready!(self.poll_keep_alive(cx));
                    break;
                }
            }
        }
        match self.out.pop() {
            Some(piece) => {
                self.keep_alive.stop();
                Poll::Ready(Some(Ok(piece)))
            }
            None if self.is_unpaid() || self.closing.is_some() => Poll::Pending,
            None => {
                self.share = None;
                self.end.poll(cx)
            }
        }
    }

    /// Whether the last bytes have to wait for the settlement.
    fn holds_bytes_back(&self) -> bool {
        let closing = self.closing.as_deref();
        closing.is_some_and(|closing| !closing.lets_bytes_pass())
    }

    /// Handles an event of the upstream: bytes, the end, or an error.
    fn take(&mut self, next: Option<Result<Bytes, CallError>>) {
        let Some(mut source) = self.source.take() else {
            return;
        };
        let is_over = next.is_none();
        let kept = self.out.len();
        let result = match next {
            Some(Ok(chunk)) => source
                .translator
                .push(chunk, &mut self.out)
                .map_err(|broken| broken_failure(&source.channel, &broken)),
            None => source
                .translator
                .end(&mut self.out)
                .map_err(|broken| broken_failure(&source.channel, &broken)),
            Some(Err(error)) => {
                let request_id = &*self.request_id;
                tracing::warn!(
                    request_id,
                    error = &error as &dyn std::error::Error,
                    "an upstream stream broke"
                );
                Err(call_failure(&error))
            }
        };
        if let Some(admission) = self.admission.as_mut() {
            admission.update_record(|record| record.keep_answer(&self.out, kept));
        }
        let result = result.and_then(|()| {
            let fits = source.charge(&self.out);
            fits.then_some(())
                .ok_or_else(|| no_memory_for("this answer"))
        });
        if let Err(failure) = result {
            self.note_broken(&failure);
            return self.fail(source, &failure);
        }
        let summary = source.translator.summary();
        if is_over || summary.ended {
            self.settle(summary);
        } else {
            self.grow_if_needed(summary);
        }
        if is_over {
            self.share = source.share;
        } else {
            self.source = Some(source);
        }
    }

    /// Records that the attempt whose answer is being relayed has failed. No other route is tried.
    fn note_broken(&mut self, failure: &Failure) {
        if let Some(admission) = self.admission.as_mut() {
            admission.update_record(|record| record.answer_broke(failure));
        }
    }

    /// Ends the stream with the error event of the client's protocol, never with a clean finish.
    fn fail(&mut self, source: StreamSource, failure: &Failure) {
        let StreamSource {
            mut translator,
            share,
            ..
        } = source;
        self.share = share;
        // After the end mark the call is closed and cannot fail.
        let Some(mut admission) = self.admission.take() else {
            return;
        };
        if let Some(cause) = &failure.cause {
            admission.update_record(|record| record.note_withheld(cause));
        }
        let summary = translator.summary();
        let outcome = ClientOutcome::failed(failure);
        if !summary.content && summary.usage.is_none() {
            admission.release(failure);
        } else {
            let is_undercharged = admission.is_undercharged(summary);
            self.admission = Some(admission);
            if is_undercharged {
                self.grow_if_needed(summary);
            }
            if self.growing.is_some() {
                self.closing = Some(Box::new(Closing::Broken(summary.clone(), outcome)));
            } else if let Some(admission) = self.admission.take() {
                admission.settle(summary, &outcome);
            }
        }
        translator.fail(failure, &self.request_id, &mut self.out);
        if self.policy.aborts_on_failure {
            self.end = StreamEnd::Abort(None);
        }
    }

    /// Ends the stream, because the node is stopping and has waited long enough for its streams (R3).
    fn end_with_node(&mut self) {
        let is_ending = |it: &Admission| it.engine().shutdown.has_begun();
        if self.admission.as_deref().is_some_and(is_ending) {
            self.break_off(&Failure::unavailable("The service is shutting down."));
        }
    }

    fn watch_ending(&mut self, cx: &mut Context<'_>) -> bool {
        self.admission
            .as_ref()
            .is_some_and(|it| self.shutdown.has_begun(&it.engine().shutdown, cx))
    }

    /// Sends a keep-alive if the upstream has been silent for too long.
    fn poll_keep_alive(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(admission) = self.admission.as_ref() else {
            return Poll::Pending;
        };
        if self.policy.keep_alive.is_empty() {
            return Poll::Pending;
        }
        let silence = admission.engine().settings.keep_alive;
        ready!(self.keep_alive.poll(silence, cx));
        self.out.push(Bytes::from_static(self.policy.keep_alive));
        Poll::Ready(())
    }
}

/// When the client leaves, the upstream is read a little longer to learn the usage (S1).
impl Drop for StreamRelay {
    fn drop(&mut self) {
        let Some(admission) = self.admission.take() else {
            return;
        };
        let has_runtime = tokio::runtime::Handle::try_current().is_ok();
        if let Some(closing) = self.closing.take() {
            let (summary, outcome) = closing.into_parts_of_gone(self.out.is_empty());
            if !has_runtime {
                return admission.settle(&summary, &outcome);
            }
            // The request to extend the hold may not have been polled yet.
            let (tasks, growing) = (admission.engine().tasks.clone(), self.growing.take());
            admission.stop_counting();
            tasks.spawn(async move { settle_grown(admission, growing, &summary, &outcome).await });
            return;
        }
        // Without a source, dropping the admission closes and counts the call.
        let Some(source) = self.source.take() else {
            return;
        };
        let growing = self.growing.take();
        admission.engine().metrics().clients_gone.inc();
        if has_runtime {
            admission.stop_counting();
            let tasks = admission.engine().tasks.clone();
            tasks.spawn(drain(source, admission, growing));
        } else {
            admission.settle(source.translator.summary(), &ClientOutcome::client_gone());
        }
    }
}

/// The failure that the client gets for a call that broke.
fn call_failure(error: &CallError) -> Failure {
    match error.kind {
        CallErrorKind::Timeout(_) => Failure::upstream_timeout(),
        CallErrorKind::Connect
        | CallErrorKind::Credential
        | CallErrorKind::Broken
        | CallErrorKind::TooLarge
        | CallErrorKind::Unsignable => Failure::upstream_error(),
    }
}
