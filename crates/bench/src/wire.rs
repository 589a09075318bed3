//! The subset of HTTP/1.1 that the upstream and the load generator use.
//!
//! Both must cost very little compared with the measured process, so nothing is allocated, and only
//! the two headers that frame the body are read.

use std::io;

use memchr::{memchr, memmem};
use tokio::io::{AsyncRead, AsyncReadExt};

const BUFFER_BYTES: usize = 64 * 1024;

/// The unread bytes of a socket, in a buffer that is reused for every message.
pub(crate) struct ReadBuffer {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl ReadBuffer {
    pub(crate) fn new() -> Self {
        Self {
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    pub(crate) fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Reads once and returns the number of bytes; 0 at the end of the connection.
    pub(crate) async fn fill(
        &mut self,
        socket: &mut (impl AsyncRead + Unpin),
    ) -> io::Result<usize> {
        if self.end == self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            return Err(io::Error::other("a message head larger than the buffer"));
        }
        let count = socket.read(&mut self.buffer[self.end..]).await?;
        self.end += count;
        Ok(count)
    }
}

/// The end of a message's head, and the framing of its body.
pub(crate) struct Head {
    pub(crate) length: usize,
    pub(crate) body: Body,
}

impl Head {
    /// Reads a head; `None` if it is incomplete.
    pub(crate) fn read(bytes: &[u8]) -> io::Result<Option<Self>> {
        let Some(end) = memmem::find(bytes, b"\r\n\r\n") else {
            return Ok(None);
        };
        let mut body = Body::Length(0);
        for line in lines(&bytes[..end + 2]) {
            if let Some(value) = value_of(line, b"content-length:") {
                body = Body::Length(decimal(value)?);
            } else if let Some(value) = value_of(line, b"transfer-encoding:") {
                if !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(io::Error::other("a transfer encoding other than chunked"));
                }
                body = Body::Chunked(ChunkState::Size(0));
            }
        }
        Ok(Some(Self {
            length: end + 4,
            body,
        }))
    }
}

/// The value of a header. `name` is in lower case and ends in a colon.
pub(crate) fn header<'a>(head: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    lines(head).find_map(|line| value_of(line, name))
}

pub(crate) fn target(head: &[u8]) -> &[u8] {
    head.split(|&byte| byte == b' ').nth(1).unwrap_or_default()
}

fn lines(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let end = memchr(b'\n', rest)?;
        let line = rest[..end].trim_ascii_end();
        rest = &rest[end + 1..];
        Some(line)
    })
}

fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (start, value) = line.split_at_checked(name.len())?;
    start.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
}

fn decimal(digits: &[u8]) -> io::Result<u64> {
    std::str::from_utf8(digits)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| io::Error::other("a content length that is not a number"))
}

/// The part of a body that has not been read yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    Length(u64),
    Chunked(ChunkState),
}

/// The position in a chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChunkState {
    Size(u64),
    Extension(u64),
    Data(u64),
    DataEnd,
    Trailer { line_is_empty: bool },
    Done,
}

impl Body {
    pub(crate) fn is_done(self) -> bool {
        matches!(self, Self::Length(0) | Self::Chunked(ChunkState::Done))
    }

    /// Passes the content of this body in `bytes` to `sink`. Returns the number of bytes that belong to the body: all
    /// of them, unless the body ends earlier.
    pub(crate) fn take(&mut self, bytes: &[u8], sink: &mut impl FnMut(&[u8])) -> io::Result<usize> {
        match self {
            Self::Length(left) => {
                let taken = within(*left, bytes);
                sink(&bytes[..taken]);
                *left -= taken as u64;
                Ok(taken)
            }
            Self::Chunked(at) => at.take(bytes, sink),
        }
    }
}

impl ChunkState {
    fn take(&mut self, bytes: &[u8], sink: &mut impl FnMut(&[u8])) -> io::Result<usize> {
        let mut position = 0;
        while position < bytes.len() && *self != Self::Done {
            if let Self::Data(left) = self {
                let taken = within(*left, &bytes[position..]);
                sink(&bytes[position..position + taken]);
                position += taken;
                *left -= taken as u64;
                if *left == 0 {
                    *self = Self::DataEnd;
                }
            } else {
                *self = self.after(bytes[position])?;
                position += 1;
            }
        }
        Ok(position)
    }

    /// Consumes one byte of the framing between two pieces of content.
    fn after(self, byte: u8) -> io::Result<Self> {
        Ok(match (self, byte) {
            (Self::Size(0) | Self::Extension(0), b'\n') => Self::Trailer {
                line_is_empty: true,
            },
            (Self::Size(size) | Self::Extension(size), b'\n') => Self::Data(size),
            (Self::Size(size), b'\r' | b';' | b' ') | (Self::Extension(size), _) => {
                Self::Extension(size)
            }
            (Self::Size(size), digit) => Self::Size(with_hex_digit(size, digit)?),
            (Self::DataEnd, b'\r') => Self::DataEnd,
            (Self::DataEnd, b'\n') => Self::Size(0),
            (
                Self::Trailer {
                    line_is_empty: true,
                },
                b'\n',
            ) => Self::Done,
            (Self::Trailer { line_is_empty }, b'\r') => Self::Trailer { line_is_empty },
            (Self::Trailer { .. }, byte) => Self::Trailer {
                line_is_empty: byte == b'\n',
            },
            (Self::DataEnd | Self::Data(_) | Self::Done, _) => {
                return Err(io::Error::other("a chunk that does not end where it said"));
            }
        })
    }
}

fn with_hex_digit(size: u64, digit: u8) -> io::Result<u64> {
    let value = char::from(digit)
        .to_digit(16)
        .filter(|_| size < 1 << 40)
        .ok_or_else(|| io::Error::other("a chunk size that is not a number"))?;
    Ok(size * 16 + u64::from(value))
}

fn within(left: u64, bytes: &[u8]) -> usize {
    usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads a body in pieces of `step` bytes. Returns its content and its length.
    fn content(mut body: Body, bytes: &[u8], step: usize) -> (Vec<u8>, usize) {
        let mut content = Vec::new();
        let mut taken = 0;
        for piece in bytes.chunks(step) {
            taken += body
                .take(piece, &mut |bytes| content.extend_from_slice(bytes))
                .unwrap();
            if body.is_done() {
                return (content, taken);
            }
        }
        panic!("the body did not end");
    }

    #[test]
    fn head_is_read_once_it_is_whole() {
        let head = b"POST /v1 HTTP/1.1\r\nHost: x\r\nContent-Length:  12\r\n\r\n";
        for end in 0..head.len() {
            assert!(Head::read(&head[..end]).unwrap().is_none());
        }
        let read = Head::read(head).unwrap().unwrap();
        assert_eq!((read.length, read.body), (head.len(), Body::Length(12)));
    }

    #[test]
    fn framing_is_known_by_its_header_in_any_case() {
        for (header, body) in [
            (
                "transfer-encoding: chunked",
                Body::Chunked(ChunkState::Size(0)),
            ),
            (
                "Transfer-Encoding: Chunked",
                Body::Chunked(ChunkState::Size(0)),
            ),
            ("CONTENT-LENGTH: 7", Body::Length(7)),
            ("x-content-length: 7", Body::Length(0)),
        ] {
            let head = format!("HTTP/1.1 200 OK\r\n{header}\r\n\r\n");
            assert_eq!(
                Head::read(head.as_bytes()).unwrap().unwrap().body,
                body,
                "{header}"
            );
        }
    }

    #[test]
    fn headers_are_found_by_name_and_the_target_by_place() {
        let head = b"GET /v1/stt?x=1 HTTP/1.1\r\nHost: x\r\nSec-WebSocket-Key:  a==\r\n\r\n";
        assert_eq!(header(head, b"sec-websocket-key:"), Some(&b"a=="[..]));
        assert_eq!(header(head, b"upgrade:"), None);
        assert_eq!(target(head), b"/v1/stt?x=1");
        assert_eq!(target(b""), b"");
    }

    #[test]
    fn bytes_after_the_body_are_left() {
        for (body, bytes, ends_at) in [
            (Body::Length(3), &b"abcHTTP/1.1"[..], 3),
            (
                Body::Chunked(ChunkState::Size(0)),
                b"3\r\nabc\r\n0\r\n\r\nHTTP/1.1",
                13,
            ),
            (
                Body::Chunked(ChunkState::Size(0)),
                b"3;x=y\r\nabc\r\n0\r\nx-sum: 1\r\n\r\nHTTP/1.1",
                27,
            ),
        ] {
            for step in 1..bytes.len() {
                assert_eq!(content(body, bytes, step), (b"abc".to_vec(), ends_at));
            }
        }
    }

    #[test]
    fn broken_chunks_are_errors() {
        for bytes in [&b"x\r\n"[..], b"3\r\nabcd", b"fffffffffffffffff\r\n"] {
            assert!(
                Body::Chunked(ChunkState::Size(0))
                    .take(bytes, &mut |_| ())
                    .is_err()
            );
        }
    }

    proptest! {
        #[test]
        fn content_does_not_depend_on_the_cuts(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..6),
            step in 1_usize..50,
        ) {
            let mut bytes = Vec::new();
            for chunk in &chunks {
                bytes.extend_from_slice(format!("{:X}\r\n", chunk.len()).as_bytes());
                bytes.extend_from_slice(chunk);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
            let all = bytes.len();
            prop_assert_eq!(content(Body::Chunked(ChunkState::Size(0)), &bytes, step), (chunks.concat(), all));
        }
    }
}
