//! A client connection: sends raw bytes and parses HTTP/1.1 answers.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::answer::{Answer, Head};
use super::request::Request;
use super::wait::within;

/// Whether a body arrived completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyEnd {
    /// The body was complete according to its framing.
    Complete,
    /// The connection closed before the body was complete.
    Truncated,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length(usize),
    Chunked,
    UntilClose,
}

#[derive(Debug)]
pub(crate) struct Connection {
    socket: TcpStream,
    /// Bytes that were read but not yet consumed.
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).await.unwrap();
        socket.set_nodelay(true).unwrap();
        Self {
            socket,
            buffer: Vec::new(),
        }
    }

    pub(crate) async fn send(&mut self, request: &Request) {
        self.write(&request.bytes()).await;
    }

    /// Writes raw bytes. If the peer has already closed the connection, this is noticed when the answer is read.
    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        let _ = within("a write", self.socket.write_all(bytes)).await;
    }

    /// Half-closes the connection: nothing more will be sent.
    pub(crate) async fn finish(&mut self) {
        let _ = self.socket.shutdown().await;
    }

    /// The head of the next final answer, or `None` if the server closes the connection.
    pub(crate) async fn head(&mut self) -> Option<Head> {
        loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                let head: Vec<u8> = self.buffer.drain(..end + 4).collect();
                let head = Head::read(std::str::from_utf8(&head[..end]).unwrap());
                // Skip interim (1xx) answers.
                if head.status >= 200 {
                    return Some(head);
                }
                continue;
            }
            if !self.read_more().await {
                assert!(self.buffer.is_empty(), "half a head: {:?}", self.buffer);
                return None;
            }
        }
    }

    pub(crate) async fn interim(&mut self) {
        while find(&self.buffer, b"\r\n\r\n").is_none() {
            assert!(self.read_more().await, "closed without an interim answer");
        }
        assert!(self.buffer.starts_with(b"HTTP/1.1 100 "));
    }

    /// The next complete answer, or `None` if the server closes the connection.
    pub(crate) async fn try_answer(&mut self) -> Option<Answer> {
        let head = self.head().await?;
        let mut reading = BodyReader::new(&head);
        let mut body = Vec::new();
        let ended = loop {
            match reading.next(self).await {
                Piece::Data(data) => body.extend_from_slice(&data),
                Piece::End(ended) => break ended,
            }
        };
        Some(Answer { head, body, ended })
    }

    pub(crate) async fn answer(&mut self) -> Answer {
        let answer = self.try_answer().await;
        answer.expect("the server closed without an answer")
    }

    /// The first bytes that the server sends; empty if it closes the connection.
    pub(crate) async fn first(&mut self) -> Vec<u8> {
        self.read_more().await;
        std::mem::take(&mut self.buffer)
    }

    /// Everything until the server closes.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        while self.read_more().await {}
        std::mem::take(&mut self.buffer)
    }

    /// Whether the server closes without a further byte.
    pub(crate) async fn is_closed(&mut self) -> bool {
        self.buffer.is_empty() && !self.read_more().await
    }

    /// Reads more bytes; returns `false` at the end of the stream.
    async fn read_more(&mut self) -> bool {
        self.buffer.reserve(16 << 10);
        let read = within("an answer", self.socket.read_buf(&mut self.buffer)).await;
        // A reset counts as the end of the stream.
        read.is_ok_and(|count| count > 0)
    }
}

#[derive(Debug)]
pub(crate) enum Piece {
    Data(Vec<u8>),
    End(BodyEnd),
}

/// Removes the framing of a body, piece by piece as the bytes arrive.
#[derive(Debug)]
pub(crate) struct BodyReader(Framing);

impl BodyReader {
    pub(crate) fn new(head: &Head) -> Self {
        let length = head.header("content-length");
        let encoding = head.header("transfer-encoding");
        Self(match (encoding, length) {
            (Some(encoding), None) => {
                assert_eq!(encoding, "chunked");
                Framing::Chunked
            }
            (None, Some(length)) => Framing::Length(length.parse().unwrap()),
            // A 204 answer has no body.
            (None, None) if head.status == 204 => Framing::Length(0),
            (None, None) => Framing::UntilClose,
            (Some(_), Some(_)) => panic!("two framings: {head:?}"),
        })
    }

    pub(crate) async fn next(&mut self, connection: &mut Connection) -> Piece {
        loop {
            if let Some(piece) = self.take(&mut connection.buffer) {
                return piece;
            }
            if !connection.read_more().await {
                let ended = match self.0 {
                    Framing::UntilClose => BodyEnd::Complete,
                    Framing::Length(_) | Framing::Chunked => BodyEnd::Truncated,
                };
                return Piece::End(ended);
            }
        }
    }

    /// The next piece that the buffered bytes contain, if there is one.
    fn take(&mut self, buffer: &mut Vec<u8>) -> Option<Piece> {
        match &mut self.0 {
            Framing::Length(0) => Some(Piece::End(BodyEnd::Complete)),
            Framing::Length(left) => {
                let count = buffer.len().min(*left);
                *left -= count;
                (count > 0).then(|| Piece::Data(buffer.drain(..count).collect()))
            }
            Framing::UntilClose => {
                (!buffer.is_empty()).then(|| Piece::Data(std::mem::take(buffer)))
            }
            Framing::Chunked => {
                let line = find(buffer, b"\r\n")?;
                let size = std::str::from_utf8(&buffer[..line]).unwrap();
                let size = usize::from_str_radix(size, 16).unwrap();
                let end = line + 2 + size + 2;
                if buffer.len() < end {
                    return None;
                }
                let chunk: Vec<u8> = buffer.drain(..end).collect();
                if size == 0 {
                    return Some(Piece::End(BodyEnd::Complete));
                }
                Some(Piece::Data(chunk[line + 2..line + 2 + size].to_vec()))
            }
        }
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    memchr::memmem::find(haystack, needle)
}
