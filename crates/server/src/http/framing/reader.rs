//! Follows the bytes of an HTTP/1 connection: where each request begins and ends, and whether that is beyond doubt.
//!
//! The HTTP library is lenient where a proxy before us may have read otherwise, and a request whose end
//! is in doubt lets a caller smuggle another one past that proxy. This reader accepts less than the
//! library and agrees with it on all that it accepts, which `hostile.rs` shows for any bytes. A request
//! that it does not accept is refused, and its connection closed (L2).

use arrayvec::ArrayVec;

use super::chunks::{Chunks, Step};

const LENGTH: &[u8] = b"content-length:";
const ENCODING: &[u8] = b"transfer-encoding:";
const HOST: &[u8] = b"host:";
/// How every HTTP/2 connection begins.
const HTTP2: &[u8] = b"PRI * HTTP/2.0";
/// A line above this is long; so much is kept of one that is cut by the end of a read.
const LINE_BYTES_MAX: usize = 64;
/// Room for the version at the end of a request line, and the line's end.
const TAIL_BYTES: usize = 9;

/// Why a request is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Refused {
    /// A length beside a transfer coding.
    LengthAndCoding,
    /// Two lengths, or one that is no number.
    Length,
    /// A transfer coding that is not `chunked` alone.
    Coding,
    /// No host, or two of them.
    Host,
    /// What stands where a request line or a chunk should is none.
    Unreadable,
}

impl Refused {
    pub(super) const ALL: [Self; 5] = [
        Self::LengthAndCoding,
        Self::Length,
        Self::Coding,
        Self::Host,
        Self::Unreadable,
    ];

    /// The reason with this number.
    pub(crate) fn of_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|it| *it as u8 == number)
    }

    /// What the caller is told.
    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::LengthAndCoding => {
                "A request has either `Content-Length` or `Transfer-Encoding`, not both."
            }
            Self::Length => "A request has one `Content-Length`, a number.",
            Self::Coding => "Request bodies are taken with no transfer coding but `chunked`.",
            Self::Host => "A request has exactly one `Host`.",
            Self::Unreadable => "The request cannot be told from the one before it.",
        }
    }
}

/// What a connection has shown so far.
#[derive(Debug, Default)]
pub(crate) struct Framing {
    pub(super) place: Place,
    /// The start of a line that was cut by the end of a read.
    partial: Partial,
    head: Head,
    /// Heads that were accepted.
    pub(super) accepted: u64,
    pub(super) refused: Option<Refused>,
    is_http2: bool,
}

/// Where the next byte stands.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Before or in a request line; empty lines may stand before it.
    #[default]
    RequestLine,
    Headers,
    Body {
        left: u64,
    },
    Chunks(Chunks),
    /// In what is not read any more: a refused request and all behind it, or HTTP/2.
    Unread,
}

#[derive(Debug, Default, Clone, Copy)]
struct Head {
    is_http_11: bool,
    lengths: u32,
    length: Option<u64>,
    codings: u32,
    is_coding_odd: bool,
    hosts: u32,
}

impl Framing {
    /// Reads on.
    pub(crate) fn read(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            bytes = match &mut self.place {
                Place::RequestLine | Place::Headers => self.read_line(bytes),
                Place::Body { left } => {
                    let count = bytes
                        .len()
                        .min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= count as u64;
                    if *left == 0 {
                        self.place = Place::RequestLine;
                    }
                    bytes.get(count..).unwrap_or_default()
                }
                Place::Chunks(chunks) => {
                    let (step, rest) = chunks.read(bytes);
                    match step {
                        Step::Inside => {}
                        Step::End => self.place = Place::RequestLine,
                        Step::Unreadable => self.refuse(Refused::Unreadable),
                    }
                    rest
                }
                Place::Unread => return,
            };
        }
    }

    /// The request that is refused, counted from zero, and why. Nothing behind it is served.
    pub(crate) fn refused(&self) -> Option<(u64, Refused)> {
        self.refused.map(|why| (self.accepted, why))
    }

    /// Whether the connection began as HTTP/2 does; then nothing of it is read here.
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

    /// A line has ended, without its line feed. All of it is in `start`, unless it is long.
    fn end_line(&mut self, start: &[u8], tail: &[u8], is_long: bool) {
        let is_empty = matches!(start, b"" | b"\r");
        match self.place {
            Place::RequestLine if is_empty => {}
            Place::RequestLine => self.end_request_line(start, tail),
            _ if is_empty => self.end_head(),
            _ => self.head.note(start, is_long),
        }
    }

    fn end_request_line(&mut self, line: &[u8], tail: &[u8]) {
        let tail = tail.strip_suffix(b"\r").unwrap_or(tail);
        let is_http_11 = tail.ends_with(b"HTTP/1.1");
        if is_http_11 || tail.ends_with(b"HTTP/1.0") {
            self.place = Place::Headers;
            self.head = Head {
                is_http_11,
                ..Head::default()
            };
        } else {
            self.is_http2 = self.accepted == 0 && line.strip_suffix(b"\r") == Some(HTTP2);
            self.refuse(Refused::Unreadable);
        }
    }

    fn end_head(&mut self) {
        match self.head.judge() {
            Ok(body) => {
                self.accepted += 1;
                self.place = body;
            }
            Err(why) => self.refuse(why),
        }
    }

    fn refuse(&mut self, why: Refused) {
        self.refused = Some(why);
        self.place = Place::Unread;
    }
}

impl Head {
    /// Notes a header that tells where the request ends, or whom it is for. A long line may not be here to
    /// its end; no length and no coding that we take needs one.
    fn note(&mut self, line: &[u8], is_long: bool) {
        // Most headers are told from these by their first letter.
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

    /// What follows this head, if that is beyond doubt.
    fn judge(&self) -> Result<Place, Refused> {
        let hosts_min = u32::from(self.is_http_11);
        if self.lengths > 0 && self.codings > 0 {
            return Err(Refused::LengthAndCoding);
        }
        if self.codings > 1 || self.is_coding_odd || self.codings > 0 && !self.is_http_11 {
            return Err(Refused::Coding);
        }
        if self.lengths > 1 || self.lengths > 0 && self.length.is_none() {
            return Err(Refused::Length);
        }
        if self.hosts > 1 || self.hosts < hosts_min {
            return Err(Refused::Host);
        }
        Ok(match self.length {
            _ if self.codings > 0 => Place::Chunks(Chunks::default()),
            None | Some(0) => Place::RequestLine,
            Some(left) => Place::Body { left },
        })
    }
}

/// The value of a header with this name and colon, without the blanks around it.
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

/// What is kept of a line that came in several reads.
#[derive(Debug, Default)]
struct Partial {
    start: ArrayVec<u8, LINE_BYTES_MAX>,
    tail: ArrayVec<u8, TAIL_BYTES>,
    bytes: usize,
}

impl Partial {
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
