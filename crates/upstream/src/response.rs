//! The response of an upstream: its head, and its body with the deadlines of the call.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderValue;
use protocol::event_stream::{Malformed, ToSse};
use tokio::time::Instant;

use crate::error::{CallError, CallErrorKind, Sent, TimeoutStage};
use crate::pool::Pool;
use crate::wire::{Connection, Framing};

/// The maximum number of pieces that a dropped body reads to find its end.
const LEFT_PIECES_MAX: usize = 4;

/// The body of a response and the part of its head that the layers above may see.
#[derive(Debug)]
pub struct UpstreamResponse {
    pub status: u16,
    pub content_type: Option<HeaderValue>,
    /// How long the upstream asks us to wait.
    pub retry_after: Option<Duration>,
    /// The name of an error, if the head contains it.
    pub error_name: Option<HeaderValue>,
    pub body: Body,
}

/// The body of a response, as it arrives.
///
/// The connection returns to the pool as soon as the last byte has been taken. If the body is
/// dropped earlier, the connection is closed, which tells the upstream to stop. If the end of the
/// body has already arrived, the connection is kept.
pub struct Body {
    state: BodyState,
    framing: Framing,
    idle: Duration,
    /// The deadline of the whole call.
    total: Instant,
    /// When we started to wait for the upstream. The time between a piece and the next poll does not count as idle.
    waiting: Option<Instant>,
    /// The pool that gets the connection at the end of the body. Without a pool, the connection is
    /// closed.
    pool: Option<Arc<Pool<Box<Connection>>>>,
    /// Converts a binary event stream to server-sent events.
    decoder: Option<Box<Decoder>>,
}

struct Decoder {
    events: ToSse,
    malformed: Option<Malformed>,
}

enum BodyState {
    Open(Box<Connection>),
    Ended,
    Broken,
}

impl Body {
    pub(crate) fn new(
        conn: Box<Connection>,
        framing: Framing,
        idle: Duration,
        total: Instant,
    ) -> Self {
        Self {
            state: BodyState::Open(conn),
            framing,
            idle,
            total,
            waiting: None,
            pool: None,
            decoder: None,
        }
    }

    /// Makes the body convert a binary event stream to server-sent events.
    pub(crate) fn decoding_events(mut self, events: ToSse) -> Self {
        self.decoder = Some(Box::new(Decoder {
            events,
            malformed: None,
        }));
        self
    }

    /// Makes the body return its connection to `pool` when it has been read to its end.
    pub(crate) fn returning_to(mut self, pool: Arc<Pool<Box<Connection>>>) -> Self {
        self.pool = Some(pool);
        if self.framing.has_ended() {
            self.finish();
        }
        self
    }

    /// The next piece, or `None` at the end of a complete body. A broken body returns an error on
    /// every call.
    ///
    /// A piece is the result of one read. `Pending` means that everything that has arrived has been returned.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, CallError>>> {
        if self.decoder.is_none() {
            return self.poll_piece(cx);
        }
        loop {
            if let Some(malformed) = self.decoder.as_ref().and_then(|it| it.malformed) {
                return Poll::Ready(Some(Err(self.broken(malformed))));
            }
            let piece = match ready!(self.poll_piece(cx)) {
                Some(Ok(piece)) => piece,
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(self.end_of_events()),
            };
            let events = self.decode(&piece);
            if !events.is_empty() {
                return Poll::Ready(Some(Ok(events)));
            }
        }
    }

    /// The events that a piece completes. If decoding then fails, the next call returns the error.
    fn decode(&mut self, piece: &[u8]) -> Bytes {
        let mut events = Vec::with_capacity(piece.len());
        if let Some(decoder) = &mut self.decoder {
            decoder.malformed = decoder.events.push(piece, &mut events).err();
        }
        Bytes::from(events)
    }

    /// Reports a stream that ends within a message as cut off, even if the body itself is complete.
    fn end_of_events(&mut self) -> Option<Result<Bytes, CallError>> {
        let end = self.decoder.as_ref().map_or(Ok(()), |it| it.events.end());
        end.err().map(|malformed| Err(self.broken(malformed)))
    }

    /// The number of buffered bytes of an incomplete message.
    pub fn held_bytes(&self) -> usize {
        let decoder = self.decoder.as_ref();
        decoder.map_or(0, |decoder| decoder.events.held_bytes())
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, CallError>>> {
        loop {
            let BodyState::Open(conn) = &mut self.state else {
                return Poll::Ready(self.after_end());
            };
            match self.framing.take(&mut conn.buf) {
                Ok(piece) => {
                    if self.framing.has_ended() {
                        self.finish();
                    }
                    if let Some(piece) = piece {
                        return Poll::Ready(Some(Ok(piece)));
                    }
                }
                Err(malformed) => return Poll::Ready(Some(Err(self.broken(malformed)))),
            }
            if let Err(error) = ready!(self.poll_more(cx)) {
                return Poll::Ready(Some(Err(error)));
            }
        }
    }

    /// The next piece, or `None` at the end of a complete body; see [`Self::poll_next`].
    pub async fn next(&mut self) -> Option<Result<Bytes, CallError>> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Reads the whole body, if it has at most `limit` bytes.
    pub async fn collect(mut self, limit: usize) -> Result<Bytes, CallError> {
        if let Some(length) = self.length_left() {
            return self.collect_known(length, limit).await;
        }
        let mut first = Bytes::new();
        let mut whole = BytesMut::new();
        while let Some(piece) = self.next().await {
            let piece = piece?;
            if first.len() + whole.len() + piece.len() > limit {
                return Err(CallError::new(Sent::Maybe, CallErrorKind::TooLarge));
            }
            if first.is_empty() && whole.is_empty() {
                first = piece;
            } else {
                whole.extend_from_slice(&std::mem::take(&mut first));
                whole.extend_from_slice(&piece);
            }
        }
        // Most responses arrive in one read and are not copied.
        Ok(if whole.is_empty() {
            first
        } else {
            whole.freeze()
        })
    }

    /// Reads a body of known length into one buffer, without copying.
    async fn collect_known(&mut self, length: u64, limit: usize) -> Result<Bytes, CallError> {
        let length = usize::try_from(length).ok().filter(|it| *it <= limit);
        let Some(length) = length else {
            return Err(CallError::new(Sent::Maybe, CallErrorKind::TooLarge));
        };
        if let BodyState::Open(conn) = &mut self.state {
            conn.expect(length);
        }
        while let BodyState::Open(conn) = &self.state
            && conn.buf.len() < length
        {
            poll_fn(|cx| self.poll_more(cx)).await?;
        }
        self.next().await.unwrap_or(Ok(Bytes::new()))
    }

    /// The number of bytes left, if the upstream declared a length.
    pub fn length_left(&self) -> Option<u64> {
        self.framing.left()
    }

    /// Whether the last byte has been taken.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, BodyState::Ended)
    }

    /// Reads more bytes into the connection's buffer, or handles a close by the upstream.
    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        let BodyState::Open(conn) = &mut self.state else {
            return Poll::Ready(Ok(()));
        };
        let read = match conn.poll_fill(cx) {
            Poll::Ready(read) => read,
            Poll::Pending => {
                let idle = *self.waiting.get_or_insert_with(Instant::now) + self.idle;
                let (deadline, stage) = if self.total <= idle {
                    (self.total, TimeoutStage::Total)
                } else {
                    (idle, TimeoutStage::Idle)
                };
                ready!(conn.timer.poll_at(deadline, cx));
                self.state = BodyState::Broken;
                return Poll::Ready(Err(CallError::late(stage)));
            }
        };
        self.waiting = None;
        match read {
            Ok(0) => match self.framing.close() {
                Ok(()) => {
                    self.finish();
                    Poll::Ready(Ok(()))
                }
                Err(malformed) => Poll::Ready(Err(self.broken(malformed))),
            },
            Ok(_) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(Err(self.broken(error))),
        }
    }

    fn finish(&mut self) {
        if let BodyState::Open(conn) = &mut self.state {
            conn.timer.forget();
        }
        self.give_back();
    }

    fn give_back(&mut self) {
        if let BodyState::Open(mut conn) = std::mem::replace(&mut self.state, BodyState::Ended)
            && let Some(pool) = self.pool.take()
            && conn.is_clean()
        {
            conn.prepare_for_reuse();
            let runtime = conn.runtime();
            pool.put(conn, runtime, Instant::now());
        }
    }

    fn broken(&mut self, why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> CallError {
        self.state = BodyState::Broken;
        CallError::broken(why)
    }

    fn after_end(&self) -> Option<Result<Bytes, CallError>> {
        match self.state {
            BodyState::Broken => Some(Err(CallError::new(Sent::Maybe, CallErrorKind::Broken))),
            BodyState::Open(_) | BodyState::Ended => None,
        }
    }
}

impl Drop for Body {
    /// Keeps the connection if the end of the body has already arrived. A reader that recognises
    /// the last event of a stream often stops just before the few bytes that end the body.
    fn drop(&mut self) {
        if self.pool.is_none() {
            return;
        }
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..LEFT_PIECES_MAX {
            let BodyState::Open(conn) = &mut self.state else {
                return;
            };
            match self.framing.take(&mut conn.buf) {
                Err(_) => return,
                Ok(_) if self.framing.has_ended() => return self.give_back(),
                Ok(Some(_)) => {}
                // No timer is used here, because this may run while the runtime shuts down.
                Ok(None) => match conn.poll_fill(&mut cx) {
                    Poll::Ready(Ok(count)) if count > 0 => {}
                    _ => return,
                },
            }
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body")
            .field("framing", &self.framing)
            .field("ended", &self.has_ended())
            .finish_non_exhaustive()
    }
}
