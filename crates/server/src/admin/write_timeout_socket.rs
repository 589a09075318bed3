//! A socket that closes the connection if the client does not read its answer.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// The number of bytes that a client must read before its deadline. Without this minimum, a client could keep its
/// connection forever by reading single bytes.
const PROGRESS_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct WriteTimeoutSocket<S> {
    socket: S,
    /// The time that a client has to read [`PROGRESS_BYTES`] of an answer, or the rest of it.
    write_timeout: Duration,
    /// The time at which the connection fails, if `behind` is set.
    deadline: Pin<Box<Sleep>>,
    /// The number of bytes that the socket has accepted since the client fell behind. `None` if the client keeps up.
    behind: Option<usize>,
}

impl<S> WriteTimeoutSocket<S> {
    pub(super) fn new(socket: S, write_timeout: Duration) -> Self {
        Self {
            socket,
            write_timeout,
            deadline: Box::pin(tokio::time::sleep(write_timeout)),
            behind: None,
        }
    }

    /// Called when a write would block because the client does not read. Fails when the deadline has passed.
    fn poll_behind(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        if self.behind.is_none() {
            self.behind = Some(0);
            let deadline = Instant::now() + self.write_timeout;
            self.deadline.as_mut().reset(deadline);
        }
        ready!(self.deadline.as_mut().poll(cx));
        Poll::Ready(io::ErrorKind::TimedOut.into())
    }

    /// Called when the socket has accepted bytes. A client that has made enough progress is no longer behind.
    fn note_written(&mut self, bytes: usize) {
        self.behind = self
            .behind
            .map(|before| before.saturating_add(bytes))
            .filter(|taken| *taken < PROGRESS_BYTES);
    }

    fn poll_written(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match written {
            Poll::Pending => self.poll_behind(cx).map(Err),
            Poll::Ready(Ok(bytes)) => {
                self.note_written(bytes);
                Poll::Ready(Ok(bytes))
            }
            failed @ Poll::Ready(Err(_)) => failed,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeoutSocket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeoutSocket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(cx, bytes);
        self.poll_written(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(cx, slices);
        self.poll_written(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // `hyper` flushes the socket only after it has written everything, so the client has caught up.
        match Pin::new(&mut self.socket).poll_flush(cx) {
            Poll::Pending => self.poll_behind(cx).map(Err),
            flushed @ Poll::Ready(_) => {
                self.behind = None;
                flushed
            }
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.socket).poll_shutdown(cx) {
            Poll::Pending => self.poll_behind(cx).map(Err),
            closed @ Poll::Ready(_) => closed,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const WRITE_TIMEOUT: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_given_up() {
        let (ours, _theirs) = tokio::io::duplex(1024);
        let mut socket = WriteTimeoutSocket::new(ours, WRITE_TIMEOUT);
        let failed = socket.write_all(&[0; 4096]).await.unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_client_that_takes_too_little_is_given_up() {
        let (ours, mut theirs) = tokio::io::duplex(1024);
        let mut socket = WriteTimeoutSocket::new(ours, WRITE_TIMEOUT);
        let answer = vec![0; 1 << 20];
        // A few bytes now and then do not count as progress.
        let trickle = async {
            loop {
                tokio::time::sleep(WRITE_TIMEOUT / 10).await;
                theirs.read_exact(&mut [0; 16]).await.unwrap();
            }
        };
        tokio::select! {
            failed = socket.write_all(&answer) => {
                assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::TimedOut);
            }
            () = trickle => {}
        }
    }

    #[tokio::test]
    async fn a_client_that_keeps_up_is_never_behind_for_long() {
        let (ours, mut theirs) = tokio::io::duplex(1024);
        let mut socket = WriteTimeoutSocket::new(ours, Duration::from_secs(600));
        let reader = tokio::spawn(async move {
            let mut taken = vec![0; 1 << 20];
            theirs.read_exact(&mut taken).await.unwrap();
            theirs
        });
        socket.write_all(&vec![0; 1 << 20]).await.unwrap();
        assert!(socket.behind.is_none_or(|taken| taken < PROGRESS_BYTES));
        // Between two answers a client is not behind, no matter how long the pause is.
        socket.flush().await.unwrap();
        assert_eq!(socket.behind, None);
        reader.await.unwrap();
    }
}
