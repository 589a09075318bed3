//! Runs a session: relays between two sockets, meters the frames and extends the hold.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use protocol::Failure;
use protocol::scrub::{Names, explain, mask_keys};
use protocol::voice::{Frame, MeterReading, Verdict, Watch, write_failure_frame};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};
use upstream::{Channel, SocketStream};

use super::hold::SessionHold;
use super::limits::SessionLimits;
use super::relay::{Side, SocketEvent, SocketRelay};
use crate::call::record::ClientOutcome;
use crate::call::shutdown::ShutdownWatch;
use crate::ids;

/// How long closing a socket may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// The number of bytes from a side that are still parsed while its socket is closed.
const CLOSE_BYTES_MAX: u64 = 64 << 10;
/// The maximum length of a reason in a close frame.
const REASON_BYTES_MAX: usize = 123;

#[derive(Debug)]
enum SessionEnd {
    /// The client closed the session. The frame is passed on to the upstream.
    ByClient(Option<CloseFrame>),
    ByUpstream(Option<CloseFrame>),
    ClientGone,
    /// The client violated the protocol or a limit.
    Misused(CloseCode),
    UpstreamGone,
    /// The ledger refused the next step, or did not answer for too long.
    Unpaid(Failure),
    /// The messages need more memory than the caller or the node has.
    NoMemory(Failure),
    Draining,
    TooLong,
}

pub(super) struct Session<C> {
    pub(super) relay: SocketRelay<C>,
    pub(super) watch: Watch,
    pub(super) hold: SessionHold,
    pub(super) bounds: SessionLimits,
    /// The upstream's name for the model, and its public id.
    pub(super) names: (Arc<str>, Arc<str>),
    pub(super) channel: Channel,
    pub(super) began: Instant,
}

/// Some methods take the session boxed, because a future stores its arguments twice.
impl<C: AsyncRead + AsyncWrite + Unpin> Session<C> {
    pub(super) async fn run(mut self: Box<Self>) {
        let ended = match self.relay().await {
            Ok(ended) => ended,
            Err(failure) => SessionEnd::Unpaid(failure),
        };
        self.finish(ended).await;
    }

    /// Relays until the session ends. Fails if the ledger refuses the next step.
    async fn relay(&mut self) -> Result<SessionEnd, Failure> {
        let engine = Arc::clone(self.hold.admission().engine());
        let mut ending = ShutdownWatch::default();
        let mut tick = pin!(sleep_until(self.next_second()));
        loop {
            if self.hold.covers(self.reading(), Instant::now())? {
                self.relay.release();
            }
            let relay = &mut self.relay;
            let next = poll_fn(|cx| {
                if ending.has_begun(&engine.shutdown, cx) {
                    return Poll::Ready(None);
                }
                relay.poll(cx).map(Some)
            });
            tokio::select! {
                biased;
                answered = self.hold.answered() => answered?,
                event = next => {
                    let Some(event) = event else {
                        return Ok(SessionEnd::Draining);
                    };
                    if let Some(ended) = self.take(event) {
                        return Ok(ended);
                    }
                }
                () = tick.as_mut() => {
                    tick.as_mut().reset(self.next_second());
                    if let Some(ended) = self.tick() {
                        return Ok(ended);
                    }
                }
            }
        }
    }

    /// The duration so far, rounded up like all billed time.
    fn now_ms(&self) -> u64 {
        let ms = self.began.elapsed().as_micros().div_ceil(1000);
        u64::try_from(ms).unwrap_or(u64::MAX)
    }

    fn reading(&self) -> MeterReading {
        self.watch.reading(self.now_ms())
    }

    /// Just after the next full second, when the billed time grows.
    fn next_second(&self) -> Instant {
        let seconds = self.began.elapsed().as_secs() + 1;
        self.began + Duration::from_secs(seconds) + Duration::from_millis(1)
    }

    fn tick(&mut self) -> Option<SessionEnd> {
        let now = Instant::now();
        if now.saturating_duration_since(self.began) >= self.bounds.session {
            return Some(SessionEnd::TooLong);
        }
        match self.relay.check_liveness(now, &self.bounds)? {
            Side::Client => Some(SessionEnd::ClientGone),
            Side::Upstream => Some(SessionEnd::UpstreamGone),
        }
    }

    fn take(&mut self, event: SocketEvent) -> Option<SessionEnd> {
        if let SocketEvent::Message(from, message) = &event {
            let charged = self.relay.charge_for(from.other(), message);
            if let Err(owner) = charged {
                return Some(SessionEnd::NoMemory(owner.failure()));
            }
        }
        match event {
            SocketEvent::Message(Side::Client, message) => self.on_client_message(message),
            SocketEvent::Message(Side::Upstream, message) => self.on_upstream_message(message),
            SocketEvent::Ended(Side::Client, error) => Some(match error {
                Some(Error::Capacity(_)) => SessionEnd::Misused(CloseCode::Size),
                Some(Error::Utf8(_)) => SessionEnd::Misused(CloseCode::Invalid),
                Some(Error::Protocol(_)) => SessionEnd::Misused(CloseCode::Protocol),
                _ => SessionEnd::ClientGone,
            }),
            SocketEvent::Ended(Side::Upstream, error) => {
                tracing::debug!(?error, "an upstream left a session");
                Some(SessionEnd::UpstreamGone)
            }
            SocketEvent::NoMemory(owner) => Some(SessionEnd::NoMemory(owner.failure())),
        }
    }

    fn on_client_message(&mut self, message: Message) -> Option<SessionEnd> {
        let verdict = match &message {
            Message::Text(text) => self.watch.on_client(Frame::Text(text)),
            Message::Binary(audio) => self.watch.on_client(Frame::Binary(audio)),
            Message::Close(close) => return Some(SessionEnd::ByClient(close.clone())),
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => return None,
        };
        match verdict {
            Verdict::Relay => self.relay.park(Side::Upstream, message),
            Verdict::Replace(text) => {
                let message = match message {
                    Message::Binary(_) => Message::binary(text),
                    _ => Message::text(text),
                };
                self.relay.park(Side::Upstream, message);
            }
            Verdict::Refuse { failure, event_id } => {
                let frame = failure_frame(&failure, event_id.as_deref());
                self.relay.reply(Message::text(frame));
            }
        }
        None
    }

    fn on_upstream_message(&mut self, message: Message) -> Option<SessionEnd> {
        let now_ms = self.now_ms();
        let names = names(&self.names, &self.channel);
        let changed = match &message {
            Message::Text(text) => self.watch.on_upstream(Frame::Text(text), now_ms, names),
            Message::Binary(audio) => self.watch.on_upstream(Frame::Binary(audio), now_ms, names),
            Message::Close(close) => {
                let reason = close.as_ref().map_or("", |close| close.reason.as_str());
                if !reason.is_empty() {
                    self.hold
                        .update_record(|record| record.note_withheld(&mask_keys(reason)));
                }
                return Some(SessionEnd::ByUpstream(close.clone()));
            }
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => return None,
        };
        if let Some(words) = changed.as_ref().and_then(|it| it.withheld.as_deref()) {
            self.hold
                .update_record(|record| record.note_withheld(words));
        }
        let message = changed.map_or(message, |changed| Message::text(changed.text));
        self.relay.park(Side::Client, message);
        None
    }

    /// Records that the session with the upstream has failed.
    fn broken(&mut self, failure: &Failure) -> ClientOutcome {
        self.hold
            .update_record(|record| record.answer_broke(failure));
        ClientOutcome::failed(failure)
    }

    /// Settles the session, then closes both sockets.
    async fn finish(mut self: Box<Self>, ended: SessionEnd) {
        let outcome = match &ended {
            SessionEnd::ByClient(_) | SessionEnd::ByUpstream(_) | SessionEnd::TooLong => {
                ClientOutcome::done()
            }
            SessionEnd::ClientGone | SessionEnd::Misused(_) => ClientOutcome::client_gone(),
            SessionEnd::UpstreamGone => self.broken(&Failure::upstream_error()),
            SessionEnd::Unpaid(failure) | SessionEnd::NoMemory(failure) => {
                ClientOutcome::failed(failure)
            }
            SessionEnd::Draining => {
                self.broken(&Failure::unavailable("The service is shutting down."))
            }
        };
        let reading = self.reading();
        self.hold.finish_step().await;
        // Frames that were not relayed are not billed.
        if self.relay.is_parked() || matches!(ended, SessionEnd::Unpaid(_)) {
            self.hold.settle_covered(&outcome);
        } else {
            self.hold.settle(reading, &outcome);
        }
        let client = &mut self.relay.client.socket;
        let upstream = &mut self.relay.upstream.socket;
        let last_frame = match &ended {
            SessionEnd::UpstreamGone => Some(failure_frame(&Failure::upstream_error(), None)),
            SessionEnd::Unpaid(failure) | SessionEnd::NoMemory(failure) => {
                Some(failure_frame(failure, None))
            }
            _ => None,
        };
        let (to_client, to_upstream) = close_frames(ended, &self.names, &self.channel);
        let closing = async {
            if let Some(frame) = last_frame {
                let _ = client.send(Message::text(frame)).await;
            }
            close_socket(client, to_client).await;
        };
        let _ = tokio::join!(
            timeout(CLOSE_TIMEOUT, closing),
            timeout(CLOSE_TIMEOUT, close_socket(upstream, to_upstream)),
        );
    }
}

/// The names that must be replaced or hidden in texts of the upstream.
fn names<'a>((upstream, public): &'a (Arc<str>, Arc<str>), channel: &'a Channel) -> Names<'a> {
    Names {
        hidden: channel.identity(),
        ..Names::of_model(upstream, public)
    }
}

/// Closes a side and reads until it ends, so that the last message arrives.
async fn close_socket<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut WebSocketStream<SocketStream<S>>,
    frame: CloseFrame,
) {
    // If the peer has already sent a close frame, the socket refuses to send ours. The next read sends the reply to the
    // peer's.
    let _ = socket.close(Some(frame)).await;
    let read_bytes_max = socket.get_ref().read_bytes() + CLOSE_BYTES_MAX;
    let is_over = poll_fn(|cx| {
        loop {
            match socket.poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(_) => return Poll::Ready(true),
                Poll::Pending if socket.get_ref().read_bytes() > read_bytes_max => {
                    return Poll::Ready(false);
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    });
    if !is_over.await {
        // The peer is still sending a message, which is discarded.
        let mut discarded = [0; 4 << 10];
        let stream = socket.get_mut();
        while stream.read(&mut discarded).await.is_ok_and(|read| read > 0) {}
    }
}

fn close_frames(
    ended: SessionEnd,
    names: &(Arc<str>, Arc<str>),
    channel: &Channel,
) -> (CloseFrame, CloseFrame) {
    let plain = |code: CloseCode| CloseFrame {
        code,
        reason: "".into(),
    };
    let both = |code| (plain(code), plain(code));
    let refused = |code: CloseCode, failure: &Failure| {
        let to_client = CloseFrame {
            code,
            reason: failure.code.as_str().into(),
        };
        (to_client, plain(CloseCode::Normal))
    };
    match ended {
        SessionEnd::ByClient(None) | SessionEnd::ByUpstream(None) | SessionEnd::TooLong => {
            both(CloseCode::Normal)
        }
        SessionEnd::ByClient(Some(frame)) => (plain(CloseCode::Normal), sendable_close(frame)),
        SessionEnd::ByUpstream(Some(frame)) => {
            let names = self::names(names, channel);
            let mut reason = explain(&frame.reason, names).unwrap_or_default();
            while reason.len() > REASON_BYTES_MAX {
                reason.pop();
            }
            let to_client = sendable_close(CloseFrame {
                code: frame.code,
                reason: reason.into(),
            });
            (to_client, plain(CloseCode::Normal))
        }
        SessionEnd::ClientGone | SessionEnd::Draining => both(CloseCode::Away),
        SessionEnd::Misused(code) => (plain(code), plain(CloseCode::Normal)),
        SessionEnd::UpstreamGone => both(CloseCode::Error),
        SessionEnd::Unpaid(failure) if failure.status() < 500 => {
            refused(CloseCode::Policy, &failure)
        }
        SessionEnd::Unpaid(failure) | SessionEnd::NoMemory(failure) => {
            refused(CloseCode::Again, &failure)
        }
    }
}

/// Sends 1011 instead of a close code that is unknown or must not be sent.
fn sendable_close(frame: CloseFrame) -> CloseFrame {
    match u16::from(frame.code) {
        1000..=1003 | 1007..=1014 | 3000..=4999 => frame,
        _ => CloseFrame {
            code: CloseCode::Error,
            reason: frame.reason,
        },
    }
}

fn failure_frame(failure: &Failure, caused_by: Option<&str>) -> String {
    let event: String = ids::fresh("event_");
    write_failure_frame(failure, &event, caused_by)
}
