//! Follows the bytes of an HTTP/1 connection and refuses requests whose end is ambiguous (L2).
//!
//! hyper accepts some malformed requests that a proxy in front of us may read differently. With such a request, a
//! client can smuggle another request past that proxy. This reader accepts fewer requests than hyper, and agrees with
//! hyper on where the accepted ones end; `hostile.rs` tests that for arbitrary bytes. A request that this reader does
//! not accept is refused, and its connection is closed.

use arrayvec::ArrayVec;

use super::chunks::{ChunkedBody, Step};

const LENGTH: &[u8] = b"content-length:";
const ENCODING: &[u8] = b"transfer-encoding:";
const HOST: &[u8] = b"host:";
/// The first line of every HTTP/2 connection.
const HTTP2: &[u8] = b"PRI * HTTP/2.0";
/// The number of bytes that are kept of the start of a line that arrives in several reads. For a line with more bytes,
/// `is_long` is set.
const LINE_BYTES_MAX: usize = 64;
/// The number of bytes that are kept of the end of a request line: its version and a carriage return.
const TAIL_BYTES: usize = 9;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FramingError {
    /// The request has both a length and a transfer coding.
    LengthAndCoding,
    /// The request has two lengths, or a length that is not a number.
    Length,
    /// The transfer coding is not a single `chunked`, or the request is HTTP/1.0, which has no transfer codings.
    Coding,
    /// `Host` is missing, or there are several.
    Host,
    /// The bytes are not a request line or a chunk where one must begin.
    Unreadable,
}

impl FramingError {
    pub(super) const ALL: [Self; 5] = [
        Self::LengthAndCoding,
        Self::Length,
        Self::Coding,
        Self::Host,
        Self::Unreadable,
    ];

    /// The error whose discriminant is `number`.
    pub(crate) fn of_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|it| *it as u8 == number)
    }

    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::LengthAndCoding => {
                "A request has either `Content-Length` or `Transfer-Encoding`, not both."
            }
            Self::Length => "A request has at most one `Content-Length`, which must be a number.",
            Self::Coding => "The only transfer coding that requests may have is `chunked`.",
            Self::Host => "A request must have exactly one `Host`.",
            Self::Unreadable => "It is unclear where this request begins.",
        }
    }
}

/// Reads the bytes of one connection along with hyper.
#[derive(Debug, Default)]
pub(crate) struct FramingReader {
    pub(super) position: Position,
    /// The beginning of a line whose end has not arrived yet.
    partial: PartialLine,
    head: Head,
    /// The number of accepted heads.
    pub(super) accepted: u64,
    pub(super) refused: Option<FramingError>,
    is_http2: bool,
}

/// The part of a request to which the next byte belongs.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// A request line, or an empty line before it.
    #[default]
    RequestLine,
    Headers,
    Body {
        left: u64,
    },
    Chunks(ChunkedBody),
    /// Bytes that are not read: a refused request and everything after it, or HTTP/2.
    Unread,
}

/// The headers that matter here, of the head that is being read.
#[derive(Debug, Default, Clone, Copy)]
struct Head {
    is_http_11: bool,
    lengths: u32,
    length: Option<u64>,
    codings: u32,
    is_coding_odd: bool,
    hosts: u32,
}

impl FramingReader {
    pub(crate) fn read(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            bytes = match &mut self.position {
                Position::RequestLine | Position::Headers => self.read_line(bytes),
                Position::Body { left } => {
                    let count = bytes
                        .len()
                        .min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= count as u64;
                    if *left == 0 {
                        self.position = Position::RequestLine;
                    }
                    bytes.get(count..).unwrap_or_default()
                }
                Position::Chunks(chunks) => {
                    let (step, rest) = chunks.read(bytes);
                    match step {
                        Step::Inside => {}
                        Step::End => self.position = Position::RequestLine,
                        Step::Unreadable => self.refuse(FramingError::Unreadable),
                    }
                    rest
                }
                Position::Unread => return,
            };
        }
    }

    /// The number of the refused request, counted from zero, and the reason. No later request is served.
    pub(crate) fn refused(&self) -> Option<(u64, FramingError)> {
        self.refused.map(|why| (self.accepted, why))
    }

    /// Whether the connection is HTTP/2, which this reader does not follow.
    pub(crate) fn is_http2(&self) -> bool {
        self.is_http2
    }

    fn read_line<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let Some(end) = memchr::memchr(b'\n', bytes) else {
            self.partial.keep(bytes);
            return &[];
        };
        let (line, rest) = bytes.split_at(end);
        if self.partial.bytes == 0 {
            self.end_line(line, line, line.len() > LINE_BYTES_MAX);
        } else {
            self.partial.keep(line);
            let partial = std::mem::take(&mut self.partial);
            self.end_line(&partial.start, &partial.tail, partial.is_long());
        }
        rest.get(1..).unwrap_or_default()
    }

    /// Ends a line, which is passed without its line feed. `start` is the whole line unless `is_long` is set.
    fn end_line(&mut self, start: &[u8], tail: &[u8], is_long: bool) {
        let is_empty = matches!(start, b"" | b"\r");
        match self.position {
            Position::RequestLine if is_empty => {}
            Position::RequestLine => self.end_request_line(start, tail),
            _ if is_empty => self.end_head(),
            _ => self.head.note(start, is_long),
        }
    }

    fn end_request_line(&mut self, line: &[u8], tail: &[u8]) {
        let tail = tail.strip_suffix(b"\r").unwrap_or(tail);
        let is_http_11 = tail.ends_with(b"HTTP/1.1");
        if is_http_11 || tail.ends_with(b"HTTP/1.0") {
            self.position = Position::Headers;
            self.head = Head {
                is_http_11,
                ..Head::default()
            };
        } else {
            self.is_http2 = self.accepted == 0 && line.strip_suffix(b"\r") == Some(HTTP2);
            self.refuse(FramingError::Unreadable);
        }
    }

    fn end_head(&mut self) {
        match self.head.next_position() {
            Ok(body) => {
                self.accepted += 1;
                self.position = body;
            }
            Err(why) => self.refuse(why),
        }
    }

    fn refuse(&mut self, why: FramingError) {
        self.refused = Some(why);
        self.position = Position::Unread;
    }
}

impl Head {
    /// Records `Host` and the headers that decide where the request ends. A long line may be incomplete here, but every
    /// length and coding that we accept is short.
    fn note(&mut self, line: &[u8], is_long: bool) {
        // The first letter is enough to skip most headers.
        match line.first().map(u8::to_ascii_lowercase) {
            Some(b'c') => {
                if let Some(value) = value_of(LENGTH, line) {
                    self.lengths += 1;
                    self.length = decimal(value).filter(|_| !is_long);
                }
            }
            Some(b't') => {
                if let Some(value) = value_of(ENCODING, line) {
                    self.codings += 1;
                    self.is_coding_odd |= is_long || !value.eq_ignore_ascii_case(b"chunked");
                }
            }
            Some(b'h') => self.hosts += u32::from(value_of(HOST, line).is_some()),
            _ => {}
        }
    }

    /// What follows this head, or an error if the head is ambiguous.
    fn next_position(&self) -> Result<Position, FramingError> {
        let hosts_min = u32::from(self.is_http_11);
        if self.lengths > 0 && self.codings > 0 {
            return Err(FramingError::LengthAndCoding);
        }
        if self.codings > 1 || self.is_coding_odd || self.codings > 0 && !self.is_http_11 {
            return Err(FramingError::Coding);
        }
        if self.lengths > 1 || self.lengths > 0 && self.length.is_none() {
            return Err(FramingError::Length);
        }
        if self.hosts > 1 || self.hosts < hosts_min {
            return Err(FramingError::Host);
        }
        Ok(match self.length {
            _ if self.codings > 0 => Position::Chunks(ChunkedBody::default()),
            None | Some(0) => Position::RequestLine,
            Some(left) => Position::Body { left },
        })
    }
}

/// The trimmed value of the header `name`, if the line is that header. `name` includes the colon.
fn value_of<'a>(name: &[u8], line: &'a [u8]) -> Option<&'a [u8]> {
    let (start, value) = line.split_at_checked(name.len())?;
    start.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, byte| {
        let digit = char::from(*byte).to_digit(10)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// The parts of a line that are kept while it arrives in several reads.
#[derive(Debug, Default)]
struct PartialLine {
    start: ArrayVec<u8, LINE_BYTES_MAX>,
    tail: ArrayVec<u8, TAIL_BYTES>,
    bytes: usize,
}

impl PartialLine {
    fn keep(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        let room = self.start.remaining_capacity().min(bytes.len());
        self.start.extend(bytes.iter().take(room).copied());
        let kept = bytes.len().saturating_sub(TAIL_BYTES);
        for byte in bytes.iter().skip(kept) {
            if self.tail.is_full() {
                self.tail.remove(0);
            }
            self.tail.push(*byte);
        }
    }

    fn is_long(&self) -> bool {
        self.bytes > LINE_BYTES_MAX
    }
}
