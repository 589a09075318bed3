//! How long a connection has been waiting, and for whom.
//!
//! A timer per request costs more than the request's own parsing. Instead each connection notes
//! its phase in two atomics against a coarse clock, and one sweep per second ends the ones that
//! overstayed: silent clients, slow headers, readers that take nothing.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use arrayvec::ArrayVec;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::http2_streams::OpenStreams;
use crate::http::framing::{Framing, Refused};

/// Milliseconds since the listener started, advanced by the sweep.
#[derive(Debug)]
pub(crate) struct CoarseClock {
    start: Instant,
    now_ms: AtomicU64,
}

impl CoarseClock {
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
            now_ms: AtomicU64::new(1),
        }
    }

    pub(crate) fn advance(&self) {
        // One is added so that zero can mean "not waiting".
        let elapsed = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1;
        self.now_ms.store(elapsed, Ordering::Relaxed);
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::Relaxed)
    }

    /// Whether what began then, unless it is zero, has lasted longer than `limit`.
    pub(crate) fn is_past(&self, since_ms: u64, limit: Duration) -> bool {
        let lasted = self.now_ms().saturating_sub(since_ms);
        since_ms != 0 && u128::from(lasted) > limit.as_millis()
    }
}

/// Pieces that are together not larger leave as one: the kernel saves more on a write of one piece than
/// their copy costs.
const JOINED_BYTES_MAX: usize = 4 * 1024;

/// No request has this number and reason.
const NONE_REFUSED: u64 = u64::MAX;

/// How long each kind of waiting may last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// From the first byte of a request head to its last, and from accept to the first byte.
    pub(crate) head: Duration,
    /// Between two requests of one connection.
    pub(crate) keep_alive: Duration,
    /// While the client takes no byte of an answer that waits for it.
    pub(crate) write: Duration,
}

/// The phase of one connection.
#[derive(Debug)]
pub(crate) struct Pulse {
    clock: Arc<CoarseClock>,
    /// An idle HTTP/2 connection is read from for pings and settings: there a byte is no sign of a
    /// head, and a head that does not end is bounded by the time between requests.
    is_http2: AtomicBool,
    /// Requests being served on this connection.
    serving: AtomicU32,
    /// Since when a head is being read; zero when none is.
    head_since: AtomicU64,
    idle_since: AtomicU64,
    /// Since when a write has been refused by the socket; zero when none is.
    blocked_since: AtomicU64,
    /// Requests that the connection has brought.
    requests: AtomicU64,
    /// Which of them is refused for its framing, and why; [`NONE_REFUSED`] when none is.
    refused: AtomicU64,
    /// The streams of an HTTP/2 connection.
    streams: Arc<OpenStreams>,
}

impl Pulse {
    pub(crate) fn new(clock: Arc<CoarseClock>) -> Self {
        let now = clock.now_ms();
        Self {
            clock,
            is_http2: AtomicBool::new(false),
            serving: AtomicU32::new(0),
            // A fresh connection owes its first head at once.
            head_since: AtomicU64::new(now),
            idle_since: AtomicU64::new(now),
            blocked_since: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            refused: AtomicU64::new(NONE_REFUSED),
            streams: Arc::default(),
        }
    }

    /// The streams of an HTTP/2 connection.
    pub(crate) fn streams(&self) -> &Arc<OpenStreams> {
        &self.streams
    }

    /// Why the request that begins now is refused for its framing. HTTP/1 alone brings one after the other,
    /// and only there is any refused.
    pub(crate) fn next_refusal(&self) -> Option<Refused> {
        let request = self.requests.fetch_add(1, Ordering::Relaxed);
        let refused = self.refused.load(Ordering::Relaxed);
        let [why, ..] = refused.to_le_bytes();
        let is_refused = refused != NONE_REFUSED && refused >> 8 <= request;
        is_refused.then(|| Refused::of_number(why)).flatten()
    }

    fn note_framing(&self, framing: &Framing) {
        if framing.is_http2() {
            self.is_http2.store(true, Ordering::Relaxed);
        } else if let Some((request, why)) = framing.refused() {
            let refused = request << 8 | u64::from(why as u8);
            self.refused.store(refused, Ordering::Relaxed);
        }
    }

    /// A request head is complete; the guard lives as long as its answer.
    pub(crate) fn serve(self: &Arc<Self>) -> Serving {
        self.serving.fetch_add(1, Ordering::Relaxed);
        self.head_since.store(0, Ordering::Relaxed);
        Serving(Arc::clone(self))
    }

    fn read_some(&self) {
        let is_idle = self.serving.load(Ordering::Relaxed) == 0
            && self.head_since.load(Ordering::Relaxed) == 0;
        if is_idle && !self.is_http2.load(Ordering::Relaxed) {
            self.head_since
                .store(self.clock.now_ms(), Ordering::Relaxed);
        }
    }

    fn write_blocked(&self) {
        let now = self.clock.now_ms();
        let _ = self
            .blocked_since
            .compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
    }

    fn wrote_some(&self) {
        if self.blocked_since.load(Ordering::Relaxed) != 0 {
            self.blocked_since.store(0, Ordering::Relaxed);
        }
    }

    /// Whether the connection has waited longer than it may.
    pub(crate) fn is_overdue(&self, patience: &Patience) -> bool {
        let waited = |since: &AtomicU64, limit: Duration| {
            self.clock.is_past(since.load(Ordering::Relaxed), limit)
        };
        if waited(&self.blocked_since, patience.write) {
            return true;
        }
        if self.serving.load(Ordering::Relaxed) > 0 {
            return false;
        }
        waited(&self.head_since, patience.head) || waited(&self.idle_since, patience.keep_alive)
    }
}

/// One request being served; dropped when its answer has ended.
#[derive(Debug)]
pub(crate) struct Serving(Arc<Pulse>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0
            .idle_since
            .store(self.0.clock.now_ms(), Ordering::Relaxed);
        self.0.serving.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A socket that tells its pulse what happens on it.
#[derive(Debug)]
pub(crate) struct Watched<S> {
    socket: S,
    pulse: Arc<Pulse>,
    framing: Framing,
}

impl<S> Watched<S> {
    pub(crate) fn new(socket: S, pulse: Arc<Pulse>) -> Self {
        Self {
            socket,
            pulse,
            framing: Framing::default(),
        }
    }

    fn note_read(&mut self, bytes: &[u8]) {
        self.framing.read(bytes);
        self.pulse.note_framing(&self.framing);
        self.pulse.read_some();
    }

    fn note_write(&self, wrote: &Poll<io::Result<usize>>) {
        match wrote {
            Poll::Pending => self.pulse.write_blocked(),
            Poll::Ready(_) => self.pulse.wrote_some(),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.socket).poll_read(cx, buf);
        if read.is_ready() {
            let bytes = buf.filled().get(before..).unwrap_or_default();
            self.note_read(bytes);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.socket).poll_write(cx, buf);
        self.note_write(&wrote);
        wrote
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut socket = Pin::new(&mut self.socket);
        let bytes: usize = bufs.iter().map(|buf| buf.len()).sum();
        let mut joined = ArrayVec::<u8, JOINED_BYTES_MAX>::new();
        let mut join = |buf: &io::IoSlice<'_>| joined.try_extend_from_slice(buf).is_ok();
        let wrote = if bytes <= JOINED_BYTES_MAX && bufs.iter().all(&mut join) {
            socket.as_mut().poll_write(cx, &joined)
        } else {
            socket.as_mut().poll_write_vectored(cx, bufs)
        };
        self.note_write(&wrote);
        wrote
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience {
        head: Duration::from_secs(10),
        keep_alive: Duration::from_secs(75),
        write: Duration::from_secs(60),
    };

    fn at(clock: &CoarseClock, seconds: u64) {
        clock.now_ms.store(seconds * 1000 + 1, Ordering::Relaxed);
    }

    /// A socket that takes one piece, as far as it has room.
    struct Narrow {
        room: usize,
        taken: Vec<u8>,
    }

    impl AsyncWrite for Narrow {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buf: &[u8],
        ) -> Poll<io::Result<usize>> {
            let count = buf.len().min(self.room);
            self.taken.extend_from_slice(&buf[..count]);
            Poll::Ready(Ok(count))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn pieces_that_are_small_together_leave_as_one() {
        let large = [b'x'; JOINED_BYTES_MAX];
        let whole: &[&[u8]] = &[b"head", b"", b"body"];
        for (pieces, room, taken) in [
            (whole, 100, 8),
            (whole, 6, 6),
            (&[&large[4..], b"body"], JOINED_BYTES_MAX, JOINED_BYTES_MAX),
            // One piece more than fits: the socket is given them as they are, and takes the first.
            (&[&large, b"body"], 2 * JOINED_BYTES_MAX, JOINED_BYTES_MAX),
        ] {
            let pulse = Pulse::new(Arc::new(CoarseClock::new()));
            let narrow = Narrow {
                room,
                taken: Vec::new(),
            };
            let mut watched = Watched::new(narrow, Arc::new(pulse));
            let slices: Vec<_> = pieces.iter().map(|piece| io::IoSlice::new(piece)).collect();
            let cx = &mut Context::from_waker(std::task::Waker::noop());
            let wrote = Pin::new(&mut watched).poll_write_vectored(cx, &slices);
            assert!(matches!(wrote, Poll::Ready(Ok(count)) if count == taken));
            assert_eq!(watched.socket.taken, pieces.concat()[..taken]);
        }
    }

    #[test]
    fn a_silent_connection_owes_its_first_head_in_ten_seconds() {
        let clock = Arc::new(CoarseClock::new());
        let pulse = Arc::new(Pulse::new(Arc::clone(&clock)));
        at(&clock, 10);
        assert!(!pulse.is_overdue(&PATIENCE));
        at(&clock, 11);
        assert!(pulse.is_overdue(&PATIENCE));
    }

    #[test]
    fn a_served_request_may_take_long_and_keep_alive_starts_after_it() {
        let clock = Arc::new(CoarseClock::new());
        let pulse = Arc::new(Pulse::new(Arc::clone(&clock)));
        let serving = pulse.serve();
        at(&clock, 1000);
        assert!(!pulse.is_overdue(&PATIENCE));
        drop(serving);
        at(&clock, 1075);
        assert!(!pulse.is_overdue(&PATIENCE));
        at(&clock, 1076);
        assert!(pulse.is_overdue(&PATIENCE));
    }

    #[test]
    fn the_next_head_is_timed_from_its_first_byte() {
        let clock = Arc::new(CoarseClock::new());
        let pulse = Arc::new(Pulse::new(Arc::clone(&clock)));
        drop(pulse.serve());
        at(&clock, 50);
        pulse.read_some();
        at(&clock, 60);
        pulse.read_some();
        assert!(!pulse.is_overdue(&PATIENCE));
        at(&clock, 61);
        assert!(
            pulse.is_overdue(&PATIENCE),
            "a further byte must not extend the time"
        );
    }

    #[test]
    fn pings_of_an_idle_http2_connection_are_no_heads() {
        let clock = Arc::new(CoarseClock::new());
        let pulse = Arc::new(Pulse::new(Arc::clone(&clock)));
        let mut framing = Framing::default();
        framing.read(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        pulse.note_framing(&framing);
        pulse.read_some();
        at(&clock, 11);
        assert!(
            pulse.is_overdue(&PATIENCE),
            "the first head is owed at once"
        );
        drop(pulse.serve());
        at(&clock, 20);
        pulse.read_some();
        at(&clock, 80);
        assert!(!pulse.is_overdue(&PATIENCE));
        at(&clock, 87);
        assert!(
            pulse.is_overdue(&PATIENCE),
            "a ping must not extend the time between requests"
        );
    }

    #[test]
    fn a_reader_that_takes_nothing_is_overdue_while_served() {
        let clock = Arc::new(CoarseClock::new());
        let pulse = Arc::new(Pulse::new(Arc::clone(&clock)));
        let _serving = pulse.serve();
        pulse.write_blocked();
        at(&clock, 30);
        pulse.wrote_some();
        pulse.write_blocked();
        at(&clock, 90);
        pulse.write_blocked();
        assert!(!pulse.is_overdue(&PATIENCE));
        at(&clock, 91);
        assert!(pulse.is_overdue(&PATIENCE));
    }

    #[test]
    fn a_refused_request_is_refused_when_its_turn_comes() {
        let pulse = Pulse::new(Arc::new(CoarseClock::new()));
        let mut framing = Framing::default();
        framing.read(b"GET / HTTP/1.1\r\nHost: g\r\n\r\nGET / HTTP/1.1\r\n\r\n");
        pulse.note_framing(&framing);
        assert_eq!(pulse.next_refusal(), None);
        assert_eq!(pulse.next_refusal(), Some(Refused::Host));
        assert_eq!(pulse.next_refusal(), Some(Refused::Host));
    }
}
