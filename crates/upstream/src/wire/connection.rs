//! One connection to an upstream, driven by the task that uses it.

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::runtime::{Handle, Id};
use tokio::time::Instant;

use super::deadline_timer::DeadlineTimer;
use super::head::{self, HEAD_BYTES_MAX, Head};
use super::malformed::Malformed;
use super::stream::Stream;
use crate::error::{CallError, CallErrorKind, Sent, TimeoutStage};
use crate::open_connections::OpenMark;
use crate::spool::{SpoolReader, SpooledPart};

/// The number of bytes per read at first.
const READ_BYTES: usize = 8 * 1024;
/// The number of bytes per read if the upstream keeps filling the buffer.
const READ_BYTES_MAX: usize = 64 * 1024;
/// If the buffer has less free space than this, it grows before a read.
const READ_BYTES_MIN: usize = 1024;

/// The maximum number of pieces of a request in one write.
const SLICES_MAX: usize = 8;
/// Bodies up to this size are copied behind their head, because writing one piece is cheaper for
/// the kernel.
const COPIED_BYTES_MAX: usize = 2 * 1024;

/// A connection. No task polls it while it is idle. If the upstream closes it, the next use notices
/// that before it writes.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: Stream,
    runtime: Id,
    /// Bytes that have been read and not yet parsed.
    pub(crate) buf: BytesMut,
    read_bytes: usize,
    pub(crate) timer: DeadlineTimer,
    request: Request,
    /// Whether the connection has been idle, so that the upstream may have closed it.
    is_reused: bool,
    head_bytes_max: usize,
    /// Counts the connection among the open connections of its channel.
    open_mark: Option<OpenMark>,
}

#[derive(Debug, Default)]
struct Request {
    head: Vec<u8>,
    /// A large body, in the pieces in which it arrived.
    body: Vec<Bytes>,
    /// The part of the body that is in a file, until it has been sent.
    file_body: Option<SpoolReader>,
    /// Whether reading the file failed, so that the request cannot be completed.
    is_file_unreadable: bool,
    written: usize,
    /// Whether TLS may have accepted bytes. If so, we cannot know whether any were sent.
    tls_took_bytes: bool,
    done: bool,
    provisional: u8,
}

/// The error of a request that got no response.
#[derive(Debug)]
pub(crate) enum ExchangeError {
    /// No byte of the request was sent.
    Unsent(io::Error),
    /// Some of the request may have arrived.
    Lost(Box<dyn std::error::Error + Send + Sync>),
}

impl Connection {
    pub(crate) fn new(stream: Stream, first_deadline: Instant) -> Self {
        Self {
            stream,
            runtime: Handle::current().id(),
            buf: BytesMut::new(),
            read_bytes: READ_BYTES,
            timer: DeadlineTimer::new(first_deadline),
            request: Request::default(),
            is_reused: false,
            head_bytes_max: HEAD_BYTES_MAX,
            open_mark: None,
        }
    }

    /// Counts the connection as one of a channel while it is open.
    pub(crate) fn counted_by(mut self, mark: OpenMark) -> Self {
        self.open_mark = Some(mark);
        self
    }

    /// The runtime that opened the connection and polls its socket.
    pub(crate) fn runtime(&self) -> Id {
        self.runtime
    }

    /// Rejects responses whose head exceeds this size.
    pub(crate) fn with_head_max(mut self, bytes: usize) -> Self {
        self.head_bytes_max = bytes;
        self
    }

    /// Prepares a request; [`Self::poll_answer`] sends it. `write_head` writes into an empty
    /// buffer, whose capacity is kept between calls.
    pub(crate) fn begin(
        &mut self,
        write_head: impl FnOnce(&mut Vec<u8>),
        body: &[Bytes],
        spooled: Option<&SpooledPart>,
    ) {
        let mut head = std::mem::take(&mut self.request.head);
        head.clear();
        write_head(&mut head);
        let bytes: usize = body.iter().map(Bytes::len).sum();
        let is_copied = bytes <= COPIED_BYTES_MAX && spooled.is_none();
        if is_copied {
            for piece in body {
                head.extend_from_slice(piece);
            }
        }
        self.request = Request {
            head,
            body: if is_copied { Vec::new() } else { body.to_vec() },
            file_body: spooled.cloned().map(SpoolReader::new),
            ..Request::default()
        };
    }

    /// Whether the upstream may have seen a part of the request.
    pub(crate) fn sent(&self) -> Sent {
        if self.request.written == 0 && !self.request.tls_took_bytes {
            Sent::No
        } else {
            Sent::Maybe
        }
    }

    /// Sends the request and waits for the head of the response until `deadline`. A timeout is
    /// reported with `stage`.
    pub(crate) async fn answer(
        &mut self,
        deadline: Instant,
        stage: TimeoutStage,
    ) -> Result<Head, CallError> {
        poll_fn(|cx| match self.poll_answer(cx) {
            Poll::Ready(Ok(head)) => Poll::Ready(Ok(head)),
            Poll::Ready(Err(ExchangeError::Unsent(error))) => Poll::Ready(Err(CallError::because(
                Sent::No,
                CallErrorKind::Broken,
                error,
            ))),
            Poll::Ready(Err(ExchangeError::Lost(error))) => {
                Poll::Ready(Err(CallError::broken(error)))
            }
            Poll::Pending => self
                .timer
                .poll_at(deadline, cx)
                .map(|()| Err(CallError::new(self.sent(), CallErrorKind::Timeout(stage)))),
        })
        .await
    }

    /// Sends the rest of the request and waits for the head of the response.
    pub(crate) fn poll_answer(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Head, ExchangeError>> {
        if !self.request.done {
            // Detects that the upstream closed an idle connection or sent something unrequested.
            // Usually this takes no system call.
            if self.is_reused
                && self.sent() == Sent::No
                && let Poll::Ready(early) = self.poll_fill(cx)
            {
                let stale = match early {
                    Err(error) => error,
                    Ok(_) => io::ErrorKind::ConnectionReset.into(),
                };
                return Poll::Ready(Err(ExchangeError::Unsent(stale)));
            }
            match self.poll_write(cx) {
                Poll::Ready(Ok(())) => self.request.done = true,
                Poll::Ready(Err(error)) if self.sent() == Sent::No => {
                    return Poll::Ready(Err(ExchangeError::Unsent(error)));
                }
                Poll::Ready(Err(error)) if self.request.is_file_unreadable => {
                    return Poll::Ready(Err(ExchangeError::Lost(error.into())));
                }
                // The upstream may answer before it has read the whole request, for example if the
                // body is too large. So the response is read even if a write fails or has to wait.
                Poll::Ready(Err(_)) | Poll::Pending => {}
            }
        }
        loop {
            match head::take(
                &mut self.buf,
                &mut self.request.provisional,
                self.head_bytes_max,
            ) {
                Ok(Some(mut head)) => {
                    head.keep_alive &= self.request.done;
                    self.request.body = Vec::new();
                    self.request.file_body = None;
                    return Poll::Ready(Ok(head));
                }
                Ok(None) => {}
                Err(malformed) => return Poll::Ready(Err(ExchangeError::Lost(malformed.into()))),
            }
            match ready!(self.poll_fill(cx)) {
                Ok(0) => return Poll::Ready(Err(ExchangeError::Lost(Malformed::Truncated.into()))),
                Ok(_) => {}
                Err(error) => return Poll::Ready(Err(ExchangeError::Lost(error.into()))),
            }
        }
    }

    /// Sends the head together with the body. In separate writes, delayed acknowledgements can cost 40 ms.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Request {
            head,
            body,
            file_body,
            is_file_unreadable,
            written,
            tls_took_bytes,
            ..
        } = &mut self.request;
        let mut stream = Pin::new(&mut self.stream);
        loop {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let before_file = file_body
                .as_ref()
                .map_or(body.len(), |file_body| file_body.at);
            let pieces = body.iter().take(before_file).map(|it| &**it);
            let pieces = std::iter::once(head.as_slice()).chain(pieces);
            let filled = fill_slices(&mut slices, pieces, *written);
            if filled == 0 {
                let Some(file) = file_body else {
                    return stream.poll_flush(cx);
                };
                let chunk =
                    ready!(file.poll_chunk(cx)).inspect_err(|_| *is_file_unreadable = true)?;
                let Some(chunk) = chunk else {
                    *file_body = None;
                    continue;
                };
                match ready!(stream.as_mut().poll_write(cx, chunk))? {
                    0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    count => file.sent(count),
                }
                continue;
            }
            *tls_took_bytes |= matches!(*stream, Stream::Tls(_));
            let wrote = match slices.get(..filled).unwrap_or_default() {
                [slice] => stream.as_mut().poll_write(cx, slice),
                slices => stream.as_mut().poll_write_vectored(cx, slices),
            };
            match ready!(wrote)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => *written = written.saturating_add(count),
            }
        }
    }

    /// Reads from the socket into the buffer; 0 means that the upstream has closed.
    pub(crate) fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.buf.capacity() - self.buf.len() < READ_BYTES_MIN {
            self.buf.reserve(self.read_bytes);
        }
        let count = ready!(pin!(self.stream.read_buf(&mut self.buf)).poll(cx))?;
        if self.buf.len() == self.buf.capacity() {
            self.read_bytes = (self.read_bytes * 2).min(READ_BYTES_MAX);
        }
        Poll::Ready(Ok(count))
    }

    /// Reserves space for a response of known length, so that it is read as one piece. A little
    /// extra space keeps the last read from reallocating.
    pub(crate) fn expect(&mut self, length: usize) {
        if length > self.buf.len() {
            self.buf.reserve(length - self.buf.len() + READ_BYTES_MIN);
        }
    }

    /// The socket, the bytes read from it, and the mark that counts it as open.
    pub(crate) fn into_parts(self) -> (Stream, Vec<u8>, Option<OpenMark>) {
        (self.stream, self.buf.to_vec(), self.open_mark)
    }

    /// Whether all bytes of the last response have been consumed. Otherwise the connection cannot
    /// be reused.
    pub(crate) fn is_clean(&self) -> bool {
        self.buf.is_empty()
    }

    /// Prepares the connection for the pool. The buffer is dropped, because idle connections need
    /// none. The last piece taken from it then owns its memory alone.
    pub(crate) fn prepare_for_reuse(&mut self) {
        self.buf = BytesMut::new();
        self.read_bytes = READ_BYTES;
        self.is_reused = true;
    }
}

/// Fills `slices` with the rest of `pieces` after the first `written` bytes, and returns the number
/// of slices used.
fn fill_slices<'a>(
    slices: &mut [IoSlice<'a>; SLICES_MAX],
    pieces: impl Iterator<Item = &'a [u8]>,
    written: usize,
) -> usize {
    let mut skip = written;
    let mut filled = 0;
    for piece in pieces {
        let left = piece.get(skip.min(piece.len())..).unwrap_or_default();
        skip = skip.saturating_sub(piece.len());
        if left.is_empty() {
            continue;
        }
        let Some(slice) = slices.get_mut(filled) else {
            break;
        };
        *slice = IoSlice::new(left);
        filled += 1;
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_go_on_where_the_last_write_stopped() {
        let pieces: [&[u8]; 4] = [b"head", b"", b"one", b"two"];
        for written in 0..=10 {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let filled = fill_slices(&mut slices, pieces.into_iter(), written);
            let left: Vec<u8> = slices[..filled].iter().flat_map(|it| it.to_vec()).collect();
            assert_eq!(left, &b"headonetwo"[written..], "{written}");
        }
    }
}
