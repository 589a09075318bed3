//! Relays a stream from the upstream to the client.
//!
//! The relay is the response body: the server polls it, and it polls the upstream. Backpressure follows from
//! that. A client that leaves drops the body, which is a normal end.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use protocol::native::Seen;
use protocol::{ByteQueue, Failure};
use store::{AdmitError, RequestId};
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use upstream::{CallError, CallErrorKind};

use crate::call::admission::Admission;
use crate::call::drain::{drain, settle_gone};
use crate::call::failed_call::refusal;
use crate::call::kind::StreamPolicy;
use crate::call::record::ClientOutcome;
use crate::call::route_failure::broken_failure;
use crate::call::shutdown::ShutdownWatch;
use crate::call::stream_source::{Growth, StreamSource};
use crate::failures::{Aborted, no_memory_for};
use crate::memory_budget::MemoryShare;

/// How much may wait for a slow reader before we stop reading from the upstream.
const OUT_BYTES_MAX: usize = 16 << 10;
/// The pause between the last bytes and an abort. An abort discards what the connection has not sent yet, and the
/// error event must arrive.
const ABORT_PAUSE: Duration = Duration::from_millis(20);

/// The pause between two requests to extend a hold while the ledger is busy.
const GROWTH_PAUSE: Duration = Duration::from_secs(1);

/// A stream that is being relayed, with the hold that pays for it.
pub struct StreamRelay {
    /// `None` when the upstream has ended, or when we need no more of it.
    source: Option<StreamSource>,
    out: ByteQueue,
    /// The memory that `out` takes once there is no source.
    share: Option<MemoryShare>,
    /// `None` when the call is closed.
    admission: Option<Box<Admission>>,
    policy: StreamPolicy,
    request_id: RequestId,
    /// Whether the last wake-up brought bytes that later ones may still join.
    fresh: bool,
    end: End,
    growing: Option<Growth>,
    /// What was seen of a complete stream that is settled once its hold has grown.
    closing: Option<Box<Seen>>,
    /// The ledger was busy and is not asked again before this time.
    grow_after: Option<Instant>,
    keep_alive: Option<Pin<Box<Sleep>>>,
    shutdown: ShutdownWatch,
}

/// How the stream ends when all bytes are handed over.
enum End {
    Clean,
    /// With an abort, after a pause that starts when the last bytes are handed over.
    Abort(Option<Pin<Box<Sleep>>>),
}

impl End {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Aborted>>> {
        if let Self::Abort(pause) = self {
            let pause = pause.get_or_insert_with(|| Box::pin(sleep(ABORT_PAUSE)));
            ready!(pause.as_mut().poll(cx));
            *self = Self::Clean;
            return Poll::Ready(Some(Err(Aborted)));
        }
        Poll::Ready(None)
    }
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
        let seen = source.translator.seen();
        let ended = seen.ended.then(|| seen.clone());
        let mut relay = Self {
            source: Some(source),
            fresh: !out.is_empty(),
            out,
            share: None,
            admission: Some(admission),
            policy,
            request_id,
            end: End::Clean,
            growing: None,
            closing: None,
            grow_after: None,
            keep_alive: None,
            shutdown: ShutdownWatch::default(),
        };
        // A short answer may end with its first read, before anything is relayed.
        if let Some(seen) = ended {
            relay.settle(&seen);
        }
        relay
    }

    /// Ends the stream with a failure, behind the bytes that it still holds.
    pub(crate) fn break_off(&mut self, failure: &Failure) {
        if let Some(source) = self.source.take() {
            self.fail(source, failure);
        }
    }

    /// Whether the call is closed. The last bytes may still be here.
    pub(crate) fn is_settled(&self) -> bool {
        self.admission.is_none()
    }

    /// The next bytes for the client.
    ///
    /// All bytes of one wake-up leave in one piece, because hyper writes one HTTP chunk per frame and many small
    /// writes would cost more than everything else. So when the upstream has nothing more right now, the relay
    /// lets the connection's task run once and polls again before it answers. It never waits for bytes that have
    /// not arrived.
    pub(crate) fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Aborted>>> {
        self.poll_growth(cx);
        // The client must see its own charge (W13).
        if self.closing.is_some() {
            return Poll::Pending;
        }
        self.end_with_node();
        while self.out.len() < OUT_BYTES_MAX {
            if self.is_unpaid() {
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
                    if self.closing.is_some() {
                        return Poll::Pending;
                    }
                }
                Poll::Pending if self.fresh => {
                    self.fresh = false;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                // The end mark was seen: the client need not wait until the upstream closes the connection.
                Poll::Pending if source.translator.seen().ended => {
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
                self.keep_alive = None;
                Poll::Ready(Some(Ok(piece)))
            }
            None if self.is_unpaid() => Poll::Pending,
            None => {
                self.share = None;
                self.end.poll(cx)
            }
        }
    }

    /// Whether there has been more output than the hold covers while the ledger is being asked for more. Until it
    /// answers, nothing is read.
    fn is_unpaid(&self) -> bool {
        let is_uncovered = |source: &StreamSource| {
            let admission = self.admission.as_ref();
            admission.is_some_and(|it| it.is_uncovered(source.translator.seen()))
        };
        self.growing.is_some() && self.source.as_ref().is_some_and(is_uncovered)
    }

    /// Handles what the upstream sent: bytes, its end, or an error.
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
                .map_err(|broken| broken_failure(&broken)),
            None => source
                .translator
                .end(&mut self.out)
                .map_err(|broken| broken_failure(&broken)),
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
            admission.note(|record| record.keep_answer(&self.out, kept));
        }
        let result = result.and_then(|()| {
            let fits = source.charge(&self.out);
            fits.then_some(())
                .ok_or_else(|| no_memory_for("this answer"))
        });
        if let Err(failure) = result {
            return self.fail(source, &failure);
        }
        let seen = source.translator.seen();
        if is_over || seen.ended {
            self.settle(seen);
        } else {
            self.grow_if_needed(seen);
        }
        if is_over {
            self.share = source.share;
        } else {
            self.source = Some(source);
        }
    }

    /// Closes the call before the last bytes leave, so that the client sees its own charge (W13).
    fn settle(&mut self, seen: &Seen) {
        let Some(admission) = self.admission.as_ref() else {
            return;
        };
        if admission.is_undercharged(seen) {
            self.grow_if_needed(seen);
            if self.growing.is_some() {
                self.closing = Some(Box::new(seen.clone()));
                return;
            }
        }
        if let Some(admission) = self.admission.take() {
            admission.settle(seen, &ClientOutcome::done());
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
        // After the end mark there is nothing left to fail.
        let Some(mut admission) = self.admission.take() else {
            return;
        };
        if let Some(cause) = &failure.cause {
            admission.note(|record| record.note_withheld(cause));
        }
        let seen = translator.seen();
        if seen.content || seen.usage.is_some() {
            admission.settle(seen, &ClientOutcome::failed(failure));
        } else {
            admission.release(failure);
        }
        translator.fail(failure, &self.request_id, &mut self.out);
        if self.policy.aborts_on_failure {
            self.end = End::Abort(None);
        }
    }

    fn grow_if_needed(&mut self, seen: &Seen) {
        if self.growing.is_some() || self.grow_after.is_some_and(|then| Instant::now() < then) {
            return;
        }
        let Some(admission) = self.admission.as_mut().filter(|it| it.wants_more(seen)) else {
            return;
        };
        if let Some(step) = admission.next_step(seen) {
            let store = admission.engine().store.clone();
            self.growing = Some(Box::pin(async move {
                store.extend(step).await?;
                Ok(())
            }));
        }
    }

    /// Checks whether the hold has grown. A refusal ends the stream, because nobody pays for the rest.
    fn poll_growth(&mut self, cx: &mut Context<'_>) {
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
        if let Some(seen) = self.closing.take() {
            if let Some(admission) = self.admission.take() {
                admission.settle(&seen, &ClientOutcome::done());
            }
            return;
        }
        match grown {
            Ok(()) => {}
            Err(error @ AdmitError::Refused { .. }) => {
                if let Some(source) = self.source.take() {
                    self.fail(source, &refusal(&error));
                }
            }
            // Our own trouble is not the caller's fault: the settlement books what the answer costs (W6).
            Err(error) => {
                tracing::warn!(?error, "a stream's hold could not grow");
                self.grow_after = Some(Instant::now() + GROWTH_PAUSE);
            }
        }
    }

    /// The node is stopping and has waited for its streams long enough (R3).
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

    /// Sends a keep-alive when the upstream has been silent for long.
    fn poll_keep_alive(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(admission) = self.admission.as_ref() else {
            return Poll::Pending;
        };
        if self.policy.keep_alive.is_empty() {
            return Poll::Pending;
        }
        let silence = admission.engine().settings.keep_alive;
        let timer = self
            .keep_alive
            .get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + silence)));
        ready!(timer.as_mut().poll(cx));
        self.keep_alive = None;
        self.out.push(Bytes::from_static(self.policy.keep_alive));
        Poll::Ready(())
    }
}

/// The client has left: the upstream is read a little longer to learn its usage (S1).
impl Drop for StreamRelay {
    fn drop(&mut self) {
        let Some(admission) = self.admission.take() else {
            return;
        };
        let has_runtime = tokio::runtime::Handle::try_current().is_ok();
        if let Some(seen) = self.closing.take() {
            if !has_runtime {
                return admission.settle(&seen, &ClientOutcome::client_gone());
            }
            // The request to the ledger may not have been polled yet.
            let (tasks, growing) = (admission.engine().tasks.clone(), self.growing.take());
            admission.stop_counting();
            tasks.spawn(async move { settle_gone(admission, growing, &seen).await });
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
            admission.settle(source.translator.seen(), &ClientOutcome::client_gone());
        }
    }
}

/// What the client is told about a call that broke.
fn call_failure(error: &CallError) -> Failure {
    match error.kind {
        CallErrorKind::Timeout(_) => Failure::upstream_timeout(),
        CallErrorKind::Connect | CallErrorKind::Broken | CallErrorKind::TooLarge => {
            Failure::upstream_error()
        }
    }
}

#[cfg(test)]
mod tests;
