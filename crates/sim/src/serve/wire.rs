//! Wraps the accepted socket to add two features that hyper does not have: it reports when all written bytes have been
//! flushed, and it can close with a TCP reset.

use parking_lot::Mutex;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// State that the body of an answer shares with the socket that sends it.
#[derive(Debug, Default)]
pub(crate) struct SocketState {
    state: Mutex<SocketFlags>,
}

#[derive(Debug, Default)]
struct SocketFlags {
    flushes: u64,
    waiting: Option<Waker>,
    reset: bool,
}

impl SocketState {
    /// The number of completed flushes.
    pub(crate) fn flushes(&self) -> u64 {
        self.state.lock().flushes
    }

    /// Ready once the number of completed flushes differs from `since`.
    pub(crate) fn poll_flushed(&self, since: u64, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.lock();
        if state.flushes != since {
            return Poll::Ready(());
        }
        state.waiting = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Makes the connection close with a TCP reset.
    pub(crate) fn reset_on_close(&self) {
        self.state.lock().reset = true;
    }

    fn note_flush(&self) {
        let mut state = self.state.lock();
        state.flushes = state.flushes.wrapping_add(1);
        if let Some(waker) = state.waiting.take() {
            waker.wake();
        }
    }
}

#[derive(Debug)]
pub(crate) struct Socket {
    stream: TcpStream,
    wire: Arc<SocketState>,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream, wire: Arc<SocketState>) -> Self {
        Self { stream, wire }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.wire.state.lock().reset {
            // If this fails, the socket is closed normally. There is no caller to report the error to.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // hyper calls this only when its own buffer is empty.
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        if matches!(flushed, Poll::Ready(Ok(()))) {
            self.wire.note_flush();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
