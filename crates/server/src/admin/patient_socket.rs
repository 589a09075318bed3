//! A socket whose reader must keep up: a client that does not take its answer loses the connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// What a client must take before its deadline, so that one that takes a byte now and then does not hold on for ever.
const PROGRESS_BYTES: usize = 64 * 1024;

/// A socket with a deadline for writes.
#[derive(Debug)]
pub(super) struct PatientSocket<S> {
    socket: S,
    /// How long a client may take for [`PROGRESS_BYTES`] of an answer, or for what is left of it.
    patience: Duration,
    /// When the connection is given up. Only counts while `behind` is set.
    deadline: Pin<Box<Sleep>>,
    /// What the client has taken since it was found to be behind.
    behind: Option<usize>,
}

impl<S> PatientSocket<S> {
    /// `patience` is how long a client may take for 64 KiB of an answer, or for what is left of it.
    pub(super) fn new(socket: S, patience: Duration) -> Self {
        Self {
            socket,
            patience,
            deadline: Box::pin(tokio::time::sleep(patience)),
            behind: None,
        }
    }

    /// The client takes nothing at present.
    fn poll_behind(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        if self.behind.is_none() {
            self.behind = Some(0);
            let deadline = Instant::now() + self.patience;
            self.deadline.as_mut().reset(deadline);
        }
        ready!(self.deadline.as_mut().poll(cx));
        Poll::Ready(io::ErrorKind::TimedOut.into())
    }

    /// The client has taken some of the answer.
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

impl<S: AsyncRead + Unpin> AsyncRead for PatientSocket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PatientSocket<S> {
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
        // Only called when everything was written.
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

    /// Short, so that the tests are.
    const IMPATIENT: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_given_up() {
        let (ours, _theirs) = tokio::io::duplex(1024);
        let mut socket = PatientSocket::new(ours, IMPATIENT);
        let failed = socket.write_all(&[0; 4096]).await.unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_client_that_takes_too_little_is_given_up() {
        let (ours, mut theirs) = tokio::io::duplex(1024);
        let mut socket = PatientSocket::new(ours, IMPATIENT);
        let answer = vec![0; 1 << 20];
        // A few bytes now and then are no progress.
        let trickle = async {
            loop {
                tokio::time::sleep(IMPATIENT / 10).await;
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
        let mut socket = PatientSocket::new(ours, Duration::from_secs(600));
        let reader = tokio::spawn(async move {
            let mut taken = vec![0; 1 << 20];
            theirs.read_exact(&mut taken).await.unwrap();
            theirs
        });
        socket.write_all(&vec![0; 1 << 20]).await.unwrap();
        assert!(socket.behind.is_none_or(|taken| taken < PROGRESS_BYTES));
        // Between two answers nobody is behind, however long that is.
        socket.flush().await.unwrap();
        assert_eq!(socket.behind, None);
        reader.await.unwrap();
    }
}
