//! The answer to the client: a body, and headers that are all our own.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderValue;
use http_body::{Body, Frame, SizeHint};
use ledger::Rates;
use protocol::ByteQueue;

use crate::call::stream::StreamRelay;
use crate::call::waiting_stream::WaitingStream;
use crate::failures::Aborted;
use crate::media::MediaStream;

/// The answer to an admitted call.
#[derive(Debug)]
pub struct Answer {
    pub content_type: HeaderValue,
    /// The state of the key's rate limits after this call.
    pub rates: Rates,
    /// The value of `x-dropped-params`.
    pub dropped: Option<String>,
    pub body: AnswerBody,
}

/// The bytes of an answer.
#[derive(Debug)]
pub enum AnswerBody {
    /// The answer is complete and in memory.
    Whole(ByteQueue),
    /// A stream that is being relayed. It owns the hold.
    Stream(Box<StreamRelay>),
    /// A stream that has begun before its upstream. It owns the call.
    Waiting(Box<WaitingStream>),
    /// The body is read from the media storage.
    Media(Box<MediaStream>),
}

impl AnswerBody {
    /// Whether the call is closed: settled, or without a charge.
    pub fn is_settled(&self) -> bool {
        match self {
            Self::Whole(_) | Self::Media(_) => true,
            Self::Stream(relay) => relay.is_settled(),
            Self::Waiting(stream) => stream.is_settled(),
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Aborted;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        match self.get_mut() {
            Self::Whole(pieces) => Poll::Ready(pieces.pop().map(|piece| Ok(Frame::data(piece)))),
            Self::Stream(relay) => relay
                .poll_piece(cx)
                .map(|piece| piece.map(|piece| piece.map(Frame::data))),
            Self::Waiting(stream) => stream
                .poll_piece(cx)
                .map(|piece| piece.map(|piece| piece.map(Frame::data))),
            Self::Media(stream) => stream
                .poll_piece(cx)
                .map(|piece| piece.map(|piece| piece.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(pieces) => pieces.is_empty(),
            Self::Stream(_) | Self::Waiting(_) => false,
            Self::Media(stream) => stream.bytes_left() == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(pieces) => {
                SizeHint::with_exact(u64::try_from(pieces.len()).unwrap_or(u64::MAX))
            }
            Self::Stream(_) | Self::Waiting(_) => SizeHint::default(),
            Self::Media(stream) => SizeHint::with_exact(stream.bytes_left()),
        }
    }
}
