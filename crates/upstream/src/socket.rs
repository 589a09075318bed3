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

/// The WebSocket of a session.
pub type Socket = WebSocketStream<SocketStream>;

/// The byte stream of a session's connection.
#[derive(Debug)]
pub struct SocketStream {
    stream: Stream,
    /// Counts the socket among the open connections of its channel.
    _open_mark: Option<OpenMark>,
}

impl SocketStream {
    pub(crate) fn new(stream: Stream, open_mark: Option<OpenMark>) -> Self {
        Self {
            stream,
            _open_mark: open_mark,
        }
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
    stream: SocketStream,
    read: Vec<u8>,
    message_bytes_max: usize,
) -> Socket {
    let config = Some(socket_config(message_bytes_max));
    WebSocketStream::from_partially_read(stream, read, Role::Client, config).await
}

impl AsyncRead for SocketStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for SocketStream {
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
