//! WebSocket sessions with an upstream: handshake and socket.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::HeaderValue;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use crate::open_connections::OpenMark;
use crate::response::UpstreamResponse;
use crate::wire::Stream;

/// How long an upstream may take to accept or refuse a session.
pub(crate) const HANDSHAKE: Duration = Duration::from_secs(30);
/// The number of bytes per read: a few frames of 20 ms.
const READ_BYTES: usize = 4 << 10;

/// The endpoint of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketEndpoint {
    Realtime,
    Speech,
    Transcript,
}

/// A request to open a session.
#[derive(Clone, Copy, Debug)]
pub struct SocketRequest<'a> {
    pub endpoint: SocketEndpoint,
    /// The encoded query string.
    pub query: &'a str,
    /// The `traceparent` header, if the channel sends it.
    pub traceparent: Option<&'a HeaderValue>,
    pub message_bytes_max: usize,
}

/// The upstream's answer to a handshake.
#[derive(Debug)]
pub enum Handshake {
    Open(Box<Socket>),
    Refused(UpstreamResponse),
}

/// The WebSocket of a session with an upstream.
pub type Socket = WebSocketStream<SocketStream<Stream>>;

/// The byte stream of one side of a session. It counts the bytes that were read from it, because a WebSocket does not
/// tell how much of an unfinished message it holds.
#[derive(Debug)]
pub struct SocketStream<S> {
    stream: S,
    read_bytes: u64,
    /// Counts the socket among the open connections of its channel.
    _open_mark: Option<OpenMark>,
}

impl<S> SocketStream<S> {
    /// The stream of a client.
    pub fn of_client(stream: S) -> Self {
        Self::new(stream, None)
    }

    pub(crate) fn new(stream: S, open_mark: Option<OpenMark>) -> Self {
        Self {
            stream,
            read_bytes: 0,
            _open_mark: open_mark,
        }
    }

    /// The number of bytes that were read so far.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes
    }
}

/// The WebSocket limits of a session, used for client and upstream. Messages are not batched: each
/// is written before the next one is read.
pub fn socket_config(message_bytes_max: usize) -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BYTES)
        .write_buffer_size(0)
        .max_write_buffer_size(2 * message_bytes_max + (1 << 20))
        .max_message_size(Some(message_bytes_max))
        .max_frame_size(Some(message_bytes_max))
}

pub(crate) async fn tunnel(
    stream: SocketStream<Stream>,
    read: Vec<u8>,
    message_bytes_max: usize,
) -> Socket {
    let config = Some(socket_config(message_bytes_max));
    WebSocketStream::from_partially_read(stream, read, Role::Client, config).await
}

impl<S: AsyncRead + Unpin> AsyncRead for SocketStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(cx, buf);
        this.read_bytes += (buf.filled().len() - before) as u64;
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for SocketStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
