//! The body of a response: an answer of the engine in pieces, timed on HTTP/2.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use engine::{Aborted, AnswerBody};
use http_body::{Body, Frame, SizeHint};
use protocol::ByteQueue;

use crate::connection::StreamTimer;
use crate::context::RequestContext;
use crate::panics::catch_poll;

/// The maximum size of a piece of an HTTP/2 answer. The client is timed piece by piece, and once hyper has taken a
/// piece, we cannot see how much of it the client has read.
const STREAM_PIECE_BYTES: usize = 16 << 10;

/// A response body, which owns the context of its request.
#[derive(Debug)]
pub(crate) struct ResponseBody {
    body: AnswerBody,
    /// The rest of a piece that was too large to be sent at once.
    rest: Bytes,
    /// Measures how long an HTTP/2 stream has been waiting for its client.
    timer: Option<Arc<StreamTimer>>,
    /// `None` if a session has taken over the context.
    context: Option<Box<RequestContext>>,
}

impl ResponseBody {
    pub(super) fn new(body: AnswerBody, context: Option<Box<RequestContext>>) -> Self {
        let mut response = Self {
            body,
            rest: Bytes::new(),
            timer: StreamTimer::current(),
            context,
        };
        response.release_call_slot_if_settled();
        response
    }

    /// Removes the content, for an answer to HEAD or after a panic.
    pub(super) fn clear(&mut self) {
        self.body = buffered(Vec::new());
    }

    /// Ends only this answer, because the connection may carry other requests (S10).
    fn abort_after_panic(&mut self) -> Aborted {
        if let Some(context) = &self.context {
            context.report_panic("an answer");
        }
        // Dropping a stream closes its hold.
        self.clear();
        Aborted
    }

    /// Frees the call slot of a settled call, so that a client that reads slowly does not keep it.
    fn release_call_slot_if_settled(&mut self) {
        if let Some(context) = &mut self.context
            && context.call_slot.is_some()
            && self.body.is_settled()
        {
            context.call_slot = None;
        }
    }

    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        let polled = catch_poll(|| Pin::new(&mut self.body).poll_frame(cx));
        self.release_call_slot_if_settled();
        polled.unwrap_or_else(|_| Poll::Ready(Some(Err(self.abort_after_panic()))))
    }

    /// Polls the next piece for a client that is timed.
    fn poll_timed(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        if self.rest.is_empty() {
            match ready!(self.poll_body(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(piece) => self.rest = piece,
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                end => return Poll::Ready(end),
            }
        }
        let piece = self.rest.split_to(self.rest.len().min(STREAM_PIECE_BYTES));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Aborted;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        match &self.timer {
            Some(timer) => timer.stop(),
            None => return self.poll_body(cx),
        }
        let piece = ready!(self.poll_timed(cx));
        if let Some(timer) = &self.timer {
            timer.start();
        }
        Poll::Ready(piece)
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.body.size_hint();
        if let Some(bytes) = hint.exact() {
            hint.set_exact(bytes + u64::try_from(self.rest.len()).unwrap_or(u64::MAX));
        }
        hint
    }
}

/// A body that is already complete.
pub(super) fn buffered(document: Vec<u8>) -> AnswerBody {
    AnswerBody::Whole(ByteQueue::from(document))
}
