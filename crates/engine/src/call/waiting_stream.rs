//! A stream that begins before its upstream has answered, so that its client gets keep-alives (`docs/decisions/005`).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use protocol::{ByteQueue, Failure};

use crate::call::answer::{Answer, AnswerBody};
use crate::call::early_stream::EarlyStream;
use crate::call::failed_call::FailedCall;
use crate::call::progress::SpawnedCall;
use crate::call::shutdown::ShutdownWatch;
use crate::call::stream::StreamRelay;
use crate::call::stream::keep_alive::KeepAliveTimer;
use crate::call::stream_end::StreamEnd;
use crate::failures::Aborted;

type StreamedCall = SpawnedCall<Result<Answer, FailedCall>>;

/// A call whose caller waits for its answer, or for the early begin of its stream.
pub(crate) struct RunningCall(Option<StreamedCall>);

impl RunningCall {
    pub(crate) fn new(call: StreamedCall) -> Self {
        Self(Some(call))
    }
}

impl Future for RunningCall {
    type Output = Result<Answer, FailedCall>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(call) = &mut self.0 else {
            return Poll::Pending;
        };
        if let Poll::Ready(answered) = Pin::new(&mut *call).poll(cx) {
            return Poll::Ready(answered);
        }
        let Some(early) = call.progress().poll_early(cx) else {
            return Poll::Pending;
        };
        match self.0.take() {
            Some(call) => Poll::Ready(Ok(WaitingStream::answer(call, early))),
            None => Poll::Pending,
        }
    }
}

/// The body of a stream that has begun early. Dropping it means that the client has left.
pub struct WaitingStream {
    state: State,
    early: Box<EarlyStream>,
    out: ByteQueue,
    end: StreamEnd,
    keep_alive: KeepAliveTimer,
    shutdown: ShutdownWatch,
}

enum State {
    /// Routes are being tried.
    Waiting(StreamedCall),
    /// A route has delivered content.
    Relaying(Box<StreamRelay>),
    /// The call has failed.
    Over,
}

impl std::fmt::Debug for WaitingStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WaitingStream").finish_non_exhaustive()
    }
}

impl WaitingStream {
    /// The answer that the client gets now.
    fn answer(call: StreamedCall, mut early: Box<EarlyStream>) -> Answer {
        Answer {
            content_type: early.content_type.clone(),
            rates: early.rates,
            dropped: early.dropped.take(),
            body: AnswerBody::Waiting(Box::new(Self {
                state: State::Waiting(call),
                early,
                out: ByteQueue::new(),
                end: StreamEnd::Clean,
                keep_alive: KeepAliveTimer::default(),
                shutdown: ShutdownWatch::default(),
            })),
        }
    }

    /// Whether the call is closed. The last bytes may not have been sent yet.
    pub(crate) fn is_settled(&self) -> bool {
        match &self.state {
            State::Waiting(_) => false,
            State::Relaying(relay) => relay.is_settled(),
            State::Over => true,
        }
    }

    /// The next bytes for the client: keep-alives until a route delivers, then the stream of that route.
    pub(crate) fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Aborted>>> {
        loop {
            if let State::Relaying(relay) = &mut self.state {
                return relay.poll_piece(cx);
            }
            if let Some(piece) = self.out.pop() {
                return Poll::Ready(Some(Ok(piece)));
            }
            let State::Waiting(call) = &mut self.state else {
                return self.end.poll(cx);
            };
            if let Poll::Ready(answered) = Pin::new(&mut *call).poll(cx) {
                match answered {
                    Ok(Answer {
                        body: AnswerBody::Stream(relay),
                        ..
                    }) => self.state = State::Relaying(relay),
                    // Only streamed calls begin early, and all their answers are streams.
                    Ok(_) => self.fail(&Failure::internal()),
                    Err(failed) => self.fail(&failed.failure),
                }
                continue;
            }
            let engine = Arc::clone(call.progress().engine());
            if self.shutdown.has_begun(&engine.shutdown, cx) {
                self.fail(&Failure::unavailable("The service is shutting down."));
                continue;
            }
            ready!(self.keep_alive.poll(engine.settings.keep_alive, cx));
            let keep_alive = self.early.keep_alive;
            self.out.push(Bytes::from_static(keep_alive));
        }
    }

    /// Ends the stream with the error event of the client's protocol.
    fn fail(&mut self, failure: &Failure) {
        self.state = State::Over;
        let EarlyStream {
            translator,
            request_id,
            aborts_on_failure,
            ..
        } = &mut *self.early;
        translator.fail(failure, request_id, &mut self.out);
        if *aborts_on_failure {
            self.end = StreamEnd::Abort(None);
        }
    }
}
