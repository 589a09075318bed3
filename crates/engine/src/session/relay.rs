//! Relays messages between two sockets.
//!
//! One message may wait in each direction. The next message of a side is read only when its last message has been sent
//! to the other side, which gives backpressure.

use std::task::{Context, Poll};

use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Bytes, Error, Message};
use upstream::{Socket, SocketStream, UpstreamStream};

use super::limits::SessionLimits;
use crate::memory_budget::{LimitOwner, MemoryShare};

/// A message of up to 64 KiB takes no memory from the caller's share, like a small request body. The other 8 KiB are
/// for the head of the message and for bytes that are read beyond its end.
const SMALL_BYTES_MAX: usize = (64 << 10) + (8 << 10);
/// Large messages take memory in steps of this size.
const STEP_BYTES: usize = 64 << 10;
/// The size of the head of a ping or pong. Heads from clients also contain a mask.
const CLIENT_HEAD_BYTES: u64 = 6;
const UPSTREAM_HEAD_BYTES: u64 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Upstream,
}

impl Side {
    pub(super) fn other(self) -> Self {
        match self {
            Self::Client => Self::Upstream,
            Self::Upstream => Self::Client,
        }
    }

    fn control_head_bytes(self) -> u64 {
        match self {
            Self::Client => CLIENT_HEAD_BYTES,
            Self::Upstream => UPSTREAM_HEAD_BYTES,
        }
    }
}

#[derive(Debug)]
pub(super) enum SocketEvent {
    Message(Side, Message),
    /// The side has ended; `None` if it closed properly.
    Ended(Side, Option<Error>),
    /// The messages of the session need more memory than is left.
    NoMemory(LimitOwner),
}

pub(super) struct SocketRelay<C> {
    pub(super) client: Peer<C>,
    pub(super) upstream: Peer<UpstreamStream>,
    /// A message that the hold does not cover yet, and its destination. Nothing more is read while it waits here.
    parked: Option<(Side, Message)>,
    /// The memory of the large messages. A socket keeps its buffers until it is dropped, so this never shrinks.
    memory: MemoryShare,
}

impl<C: AsyncRead + AsyncWrite + Unpin> SocketRelay<C> {
    pub(super) fn new(
        client: WebSocketStream<SocketStream<C>>,
        upstream: Socket,
        memory: MemoryShare,
    ) -> Self {
        Self {
            client: Peer::new(client),
            upstream: Peer::new(upstream),
            parked: None,
            memory,
        }
    }

    /// Keeps a message until the hold covers it. No other message can be waiting, because nothing is read in the
    /// meantime.
    pub(super) fn park(&mut self, to: Side, message: Message) {
        self.parked = Some((to, message));
    }

    /// Charges the memory for sending a message. This comes before the metering, because a message without memory is
    /// not sent.
    pub(super) fn charge_for(&mut self, to: Side, message: &Message) -> Result<(), LimitOwner> {
        match to {
            Side::Client => self.client.note_written(message),
            Side::Upstream => self.upstream.note_written(message),
        }
        self.charge()
    }

    pub(super) fn is_parked(&self) -> bool {
        self.parked.is_some()
    }

    /// Sends the parked message, because the hold covers it now.
    pub(super) fn release(&mut self) {
        match self.parked.take() {
            Some((Side::Client, message)) => self.client.next = Some(message),
            Some((Side::Upstream, message)) => self.upstream.next = Some(message),
            None => {}
        }
    }

    /// Sends our own message to the client, before the message that waits.
    pub(super) fn reply(&mut self, message: Message) {
        self.client.reply = Some(message);
    }

    fn reads_client(&self) -> bool {
        // The last reply must have been sent, because the next frame may need a reply too.
        self.parked.is_none() && !self.upstream.is_blocked() && self.client.reply.is_none()
    }

    fn reads_upstream(&self) -> bool {
        self.parked.is_none() && !self.client.is_blocked()
    }

    /// Returns a side that no longer responds, if there is one. Also sends the pings that are due.
    pub(super) fn check_liveness(&mut self, now: Instant, bounds: &SessionLimits) -> Option<Side> {
        // Both values are computed first, because a ping that waits to be sent makes them `false`.
        let (reads_client, reads_upstream) = (self.reads_client(), self.reads_upstream());
        if self.client.is_dead(now, reads_client, bounds) {
            return Some(Side::Client);
        }
        if self.upstream.is_dead(now, reads_upstream, bounds) {
            return Some(Side::Upstream);
        }
        None
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<SocketEvent> {
        let event = self.poll_sockets(cx);
        // An unfinished message is no event, but it takes memory.
        if let Err(owner) = self.charge() {
            return Poll::Ready(SocketEvent::NoMemory(owner));
        }
        event
    }

    /// Charges the memory that the buffers of both sides have grown to.
    fn charge(&mut self) -> Result<(), LimitOwner> {
        let needed = self.client.large_bytes() + self.upstream.large_bytes();
        let taken = self.memory.bytes();
        if needed <= taken {
            return Ok(());
        }
        self.memory
            .try_grow(needed.next_multiple_of(STEP_BYTES) - taken)
    }

    fn poll_sockets(&mut self, cx: &mut Context<'_>) -> Poll<SocketEvent> {
        if let Err(error) = self.client.poll_write(cx) {
            return Poll::Ready(SocketEvent::Ended(Side::Client, Some(error)));
        }
        if let Err(error) = self.upstream.poll_write(cx) {
            return Poll::Ready(SocketEvent::Ended(Side::Upstream, Some(error)));
        }
        if self.reads_client()
            && let Poll::Ready(event) = self.client.poll_read(Side::Client, cx)
        {
            return Poll::Ready(event);
        }
        if self.reads_upstream() {
            return self.upstream.poll_read(Side::Upstream, cx);
        }
        Poll::Pending
    }
}

/// One side of the session.
pub(super) struct Peer<S> {
    pub(super) socket: WebSocketStream<SocketStream<S>>,
    /// Our own message. It is sent before the message that waits.
    reply: Option<Message>,
    next: Option<Message>,
    /// Whether bytes may have to be flushed.
    dirty: bool,
    heard: Instant,
    /// The number of bytes that had been read from the stream when the side was last heard.
    read_bytes: u64,
    /// The number of these bytes that belong to complete messages.
    message_bytes: u64,
    /// The size of the largest message that the side has begun to send, and of the largest message sent to it.
    read_bytes_max: usize,
    written_bytes_max: usize,
    /// Since when the side has not accepted the message that waits for it.
    blocked: Option<Instant>,
    pinged: Instant,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    fn new(socket: WebSocketStream<SocketStream<S>>) -> Self {
        let now = Instant::now();
        Self {
            socket,
            reply: None,
            next: None,
            dirty: false,
            heard: now,
            read_bytes: 0,
            message_bytes: 0,
            read_bytes_max: 0,
            written_bytes_max: 0,
            blocked: None,
            pinged: now,
        }
    }

    fn is_blocked(&self) -> bool {
        self.dirty || self.reply.is_some() || self.next.is_some()
    }

    fn is_dead(&mut self, now: Instant, reads: bool, bounds: &SessionLimits) -> bool {
        // A side that we do not read cannot be blamed for its silence.
        if !reads {
            self.heard = now;
        }
        self.blocked = self.is_blocked().then(|| self.blocked.unwrap_or(now));
        let waited = |since: Instant| now.saturating_duration_since(since);
        if self.blocked.is_none() && waited(self.pinged) >= bounds.ping {
            self.pinged = now;
            self.reply = Some(Message::Ping(Bytes::new()));
        }
        let stuck = self
            .blocked
            .is_some_and(|since| waited(since) >= bounds.dead);
        stuck || waited(self.heard) >= bounds.dead
    }

    /// The memory of the buffers beyond that of small messages.
    fn large_bytes(&self) -> usize {
        self.read_bytes_max.saturating_sub(SMALL_BYTES_MAX)
            + self.written_bytes_max.saturating_sub(SMALL_BYTES_MAX)
    }

    /// Records that a message will be sent to this side.
    fn note_written(&mut self, message: &Message) {
        self.written_bytes_max = self.written_bytes_max.max(message.len());
    }

    /// Records the bytes that were read, including those of an unfinished message, because a slow sender is not gone.
    fn note_read(&mut self) {
        let read_bytes = self.socket.get_ref().read_bytes();
        if read_bytes == self.read_bytes {
            return;
        }
        self.read_bytes = read_bytes;
        self.heard = Instant::now();
        let unfinished = read_bytes.saturating_sub(self.message_bytes);
        let unfinished = usize::try_from(unfinished).unwrap_or(usize::MAX);
        self.read_bytes_max = self.read_bytes_max.max(unfinished);
    }

    fn poll_read(&mut self, side: Side, cx: &mut Context<'_>) -> Poll<SocketEvent> {
        let next = self.socket.poll_next_unpin(cx);
        self.note_read();
        let Poll::Ready(next) = next else {
            return Poll::Pending;
        };
        self.heard = Instant::now();
        Poll::Ready(match next {
            Some(Ok(message)) => {
                // A ping or pong may come between the parts of a message, so the message may still be unfinished.
                self.message_bytes = if message.is_ping() || message.is_pong() {
                    self.message_bytes + side.control_head_bytes() + message.len() as u64
                } else {
                    self.read_bytes
                };
                // The socket keeps the pong until it is flushed.
                self.dirty |= message.is_ping();
                SocketEvent::Message(side, message)
            }
            Some(Err(error)) => SocketEvent::Ended(side, Some(error)),
            None => SocketEvent::Ended(side, None),
        })
    }

    /// Sends the waiting messages in order, and flushes.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Result<(), Error> {
        for place in [&mut self.reply, &mut self.next] {
            if place.is_none() {
                continue;
            }
            match self.socket.poll_ready_unpin(cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(ready) => ready?,
            }
            if let Some(message) = place.take() {
                self.socket.start_send_unpin(message)?;
                self.dirty = true;
            }
        }
        if self.dirty
            && let Poll::Ready(flushed) = self.socket.poll_flush_unpin(cx)
        {
            flushed?;
            self.dirty = false;
        }
        Ok(())
    }
}
