//! Sends the body of an answer: executes the steps of `reply/body_steps.rs`.

use super::wire::SocketState;
use crate::call_log::{CallEnd, CallRecord};
use crate::reply::{BodySteps, Step};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::time::Sleep;

#[derive(Debug)]
pub(crate) struct Body {
    steps: BodySteps,
    wire: Arc<SocketState>,
    /// `None` for the control endpoint, whose calls are not logged, and for accepted WebSocket sessions, which keep the
    /// record themselves.
    record: Option<CallRecord>,
    state: BodyState,
    /// The number of remaining bytes, if the head has a `content-length`.
    left: Option<u64>,
}

#[derive(Debug)]
enum BodyState {
    Playing,
    Waiting(Pin<Box<Sleep>>),
    Flushing { since: u64 },
    Hanging,
}

/// The error for an answer that a script broke off.
#[derive(Debug)]
pub(crate) struct BrokenOff;

impl fmt::Display for BrokenOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the answer was broken off by its script")
    }
}

impl std::error::Error for BrokenOff {}

impl Body {
    pub(crate) fn new(
        steps: BodySteps,
        wire: Arc<SocketState>,
        record: Option<CallRecord>,
    ) -> Self {
        let left = steps.length();
        let mut body = Self {
            steps,
            wire,
            record,
            state: BodyState::Playing,
            left,
        };
        // hyper does not poll an empty body.
        if left == Some(0) {
            body.will_end(CallEnd::Completed);
        }
        body
    }

    fn will_end(&mut self, end: CallEnd) {
        if let Some(record) = &mut self.record {
            record.will_end(end);
        }
    }

    fn send(&mut self, bytes: Bytes) -> Frame<Bytes> {
        let len = bytes.len() as u64;
        if let Some(record) = &mut self.record {
            record.sent(len);
        }
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(len);
            // After the last byte of a known length, hyper drops the body without polling it again.
            if *left == 0 {
                self.will_end(CallEnd::Completed);
            }
        }
        Frame::data(bytes)
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let body = self.get_mut();
        loop {
            match &mut body.state {
                BodyState::Playing => {}
                BodyState::Waiting(sleep) => ready!(sleep.as_mut().poll(cx)),
                BodyState::Flushing { since } => ready!(body.wire.poll_flushed(*since, cx)),
                BodyState::Hanging => return Poll::Pending,
            }
            body.state = BodyState::Playing;
            match body.steps.next() {
                Some(Step::Send(bytes)) => return Poll::Ready(Some(Ok(body.send(bytes)))),
                Some(Step::Flush) => {
                    body.state = BodyState::Flushing {
                        since: body.wire.flushes(),
                    };
                }
                Some(Step::Wait(wait)) => {
                    body.state = BodyState::Waiting(Box::pin(tokio::time::sleep(wait)));
                }
                Some(Step::Hang) => {
                    body.will_end(CallEnd::Cancelled);
                    body.state = BodyState::Hanging;
                }
                Some(Step::Cut) => {
                    body.will_end(CallEnd::Cut);
                    return Poll::Ready(Some(Err(BrokenOff)));
                }
                Some(Step::Reset) => {
                    body.will_end(CallEnd::Reset);
                    body.wire.reset_on_close();
                    return Poll::Ready(Some(Err(BrokenOff)));
                }
                None => {
                    body.will_end(CallEnd::Completed);
                    return Poll::Ready(None);
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.left == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.left
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
