//! Decides when the last bytes of a stream may be sent, and how its body ends after them.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use protocol::native::AnswerSummary;
use tokio::time::{Sleep, sleep};

use crate::call::record::ClientOutcome;
use crate::failures::Aborted;

/// The pause between the last bytes and an abort. An abort discards what the connection has not sent yet, but the error
/// event must arrive.
const ABORT_PAUSE: Duration = Duration::from_millis(20);

/// A stream that has ended but cannot be settled yet. Its usage was not reported, so our own count is charged, capped
/// at the hold. Nobody knows the charge until the ledger says whether the hold has grown, and journal and ledger must
/// show the same charge. The body never ends before the settlement (W13).
pub(super) enum Closing {
    /// The answer is complete. Its last bytes wait for the settlement, because a client that has seen the end mark may
    /// read its balance.
    Complete(AnswerSummary),
    /// The stream broke. The error event is sent immediately: the ledger may be slow, and the client can do nothing
    /// with the rest of the stream.
    Broken(AnswerSummary, ClientOutcome),
}

impl Closing {
    /// Whether bytes may be sent before the settlement.
    pub(super) fn lets_bytes_pass(&self) -> bool {
        matches!(self, Self::Broken(..))
    }

    pub(super) fn summary(&self) -> &AnswerSummary {
        match self {
            Self::Complete(summary) | Self::Broken(summary, _) => summary,
        }
    }

    pub(super) fn into_parts(self) -> (AnswerSummary, ClientOutcome) {
        match self {
            Self::Complete(summary) => (summary, ClientOutcome::done()),
            Self::Broken(summary, outcome) => (summary, outcome),
        }
    }

    /// Like `into_parts`, for a client that has left. A client that has received the error event has seen the end of
    /// its call.
    pub(super) fn into_parts_of_gone(self, is_all_taken: bool) -> (AnswerSummary, ClientOutcome) {
        match self {
            Self::Broken(summary, outcome) if is_all_taken => (summary, outcome),
            Self::Complete(summary) | Self::Broken(summary, _) => {
                (summary, ClientOutcome::client_gone())
            }
        }
    }
}

/// How the body ends after its last bytes.
pub(super) enum StreamEnd {
    Clean,
    /// With an abort, after a pause that starts when the last bytes are taken.
    Abort(Option<Pin<Box<Sleep>>>),
}

impl StreamEnd {
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Aborted>>> {
        if let Self::Abort(pause) = self {
            let pause = pause.get_or_insert_with(|| Box::pin(sleep(ABORT_PAUSE)));
            ready!(pause.as_mut().poll(cx));
            *self = Self::Clean;
            return Poll::Ready(Some(Err(Aborted)));
        }
        Poll::Ready(None)
    }
}
