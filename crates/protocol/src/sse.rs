//! Splits a byte stream into server-sent-event frames.
//!
//! Upstreams split frames anywhere, even inside a line ending or a UTF-8 character. The splitter
//! searches only for line ends and returns the same frames for every chunking. A frame that arrives
//! in one read shares the memory of that read.

use std::borrow::Cow;
use std::ops::Range;

use bytes::{Bytes, BytesMut};

/// The maximum size of an upstream's event, unless the caller sets another limit.
pub(crate) const EVENT_BYTES_MAX: usize = 16 << 20;

/// An event is larger than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event is larger than {0} bytes")]
pub struct TooLarge(pub usize);

/// One frame: its lines and the blank line after them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The bytes as received.
    pub bytes: Bytes,
    lines: FrameLines,
}

/// Facts about the lines of a frame, collected while the splitter searches for its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct FrameLines {
    count: usize,
    /// The length of the first line, once it is complete.
    first: usize,
}

/// The data of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data<'a> {
    /// No `data` field, or an empty one. Clients ignore a frame without data.
    Absent,
    /// The data is in one line, at this position.
    Line(Range<usize>),
    /// The data is in several lines. The text is as long as the frame and has the data at the same positions,
    /// with spaces elsewhere. So spans in the text are spans of the frame.
    Lines(Cow<'a, [u8]>),
}

impl Frame {
    /// Finds the data.
    pub fn data(&self) -> Data<'_> {
        let first = 0..self.lines.first;
        if self.lines.count == 1 {
            return match data_in(&self.bytes, first) {
                Some(span) if !span.is_empty() => Data::Line(span),
                _ => Data::Absent,
            };
        }
        let mut found: Option<Range<usize>> = None;
        let mut masked: Option<Vec<u8>> = None;
        for line in lines(&self.bytes) {
            let Some(span) = data_in(&self.bytes, line) else {
                continue;
            };
            let Some(before) = &found else {
                found = Some(span);
                continue;
            };
            let masked = masked.get_or_insert_with(|| {
                let mut spaces = vec![b' '; self.bytes.len()];
                copy_line(&mut spaces, &self.bytes, before.clone());
                spaces
            });
            copy_line(masked, &self.bytes, span);
        }
        match (found, masked) {
            (_, Some(masked)) => Data::Lines(Cow::Owned(masked)),
            (Some(span), None) if !span.is_empty() => Data::Line(span),
            _ => Data::Absent,
        }
    }

    /// The data of the first line, if it is a data line.
    pub(crate) fn first_data(&self) -> Option<&[u8]> {
        self.bytes.get(data_in(&self.bytes, 0..self.lines.first)?)
    }

    pub(crate) fn is_one_line(&self) -> bool {
        self.lines.count == 1
    }

    /// Whether the frame is a single line that starts with `data: `.
    pub fn is_plain_data(&self) -> bool {
        self.is_one_line() && self.bytes.starts_with(b"data: ")
    }

    /// The frame's data as a single line that starts with `data: `, if there is any data.
    pub(crate) fn to_plain_data(&self) -> Option<Self> {
        let mut bytes = b"data: ".to_vec();
        match self.data() {
            Data::Absent => return None,
            Data::Line(span) => bytes.extend_from_slice(self.bytes.get(span)?),
            // Between lines of JSON a space is equivalent to a line feed.
            Data::Lines(masked) => bytes.extend(
                masked
                    .trim_ascii()
                    .iter()
                    .map(|byte| if *byte == b'\n' { b' ' } else { *byte }),
            ),
        }
        let lines = FrameLines {
            count: 1,
            first: bytes.len(),
        };
        bytes.extend_from_slice(b"\n\n");
        Some(Self {
            bytes: Bytes::from(bytes),
            lines,
        })
    }

    /// Whether every line is data or the name of an event. Ids and comments belong to the server,
    /// and some routers put their name in them.
    pub(crate) fn is_without_metadata(&self) -> bool {
        match self.lines.count {
            1 => self.bytes.starts_with(b"data:") || self.bytes.starts_with(b"event:"),
            // Usually an event name and its data, which the first bytes of both lines show.
            2 if self.bytes.starts_with(b"event:") => {
                let behind = self.bytes.get(self.lines.first..).unwrap_or_default();
                behind.trim_ascii_start().starts_with(b"data:")
            }
            _ => lines(&self.bytes).all(|line| self.is_data_or_name(line)),
        }
    }

    /// A frame with only those lines that are data or the name of an event.
    #[must_use]
    pub(crate) fn without_metadata(&self) -> Self {
        let mut bytes = Vec::with_capacity(self.bytes.len());
        let mut found = FrameLines::default();
        for line in lines(&self.bytes).filter(|line| self.is_data_or_name(line.clone())) {
            let start = if line.start == 0 {
                byte_order_mark_length(&self.bytes)
            } else {
                line.start
            };
            let text = self.bytes.get(start..line.end).unwrap_or_default();
            if found.count == 0 {
                found.first = text.len();
            }
            found.count += 1;
            bytes.extend_from_slice(text);
            bytes.push(b'\n');
        }
        bytes.push(b'\n');
        Self {
            bytes: Bytes::from(bytes),
            lines: found,
        }
    }

    fn is_data_or_name(&self, line: Range<usize>) -> bool {
        let is = |name| field(&self.bytes, line.clone(), name).is_some();
        is(b"data") || is(b"event")
    }

    /// The name of the event.
    pub fn event(&self) -> Option<&[u8]> {
        self.bytes.get(self.event_span()?)
    }

    /// Whether a line names the event.
    pub fn has_name(&self) -> bool {
        self.bytes.starts_with(b"event:") || !self.is_one_line() && self.event_span().is_some()
    }

    /// The position of the event's name.
    pub(crate) fn event_span(&self) -> Option<Range<usize>> {
        lines(&self.bytes)
            .filter_map(|line| field(&self.bytes, line, b"event"))
            .last()
    }

    /// Whether the frame has lines that are not comments.
    pub(crate) fn has_fields(&self) -> bool {
        lines(&self.bytes).any(|line| self.bytes.get(line.start) != Some(&b':'))
    }
}

/// Copies the data of one line into `masked`, at the same position as in the frame. Puts a line feed after
/// the data, which joins it to the data of the next line.
fn copy_line(masked: &mut [u8], bytes: &[u8], span: Range<usize>) {
    if let Some(feed) = masked.get_mut(span.end) {
        *feed = b'\n';
    }
    if let (Some(to), Some(from)) = (masked.get_mut(span.clone()), bytes.get(span)) {
        to.copy_from_slice(from);
    }
}

/// The length of a byte order mark before the first line.
fn byte_order_mark_length(bytes: &[u8]) -> usize {
    if bytes.starts_with(b"\xef\xbb\xbf") {
        3
    } else {
        0
    }
}

fn data_in(bytes: &[u8], line: Range<usize>) -> Option<Range<usize>> {
    field(bytes, line, b"data")
}

/// The value of a field, if `line` is a field with that name.
fn field(bytes: &[u8], mut line: Range<usize>, name: &[u8]) -> Option<Range<usize>> {
    if line.start == 0 {
        line.start = line.end.min(byte_order_mark_length(bytes));
    }
    let rest = bytes.get(line.clone())?.strip_prefix(name)?;
    let value = line.end - rest.len();
    match rest {
        [] => Some(line.end..line.end),
        [b':', b' ', ..] => Some(value + 2..line.end),
        [b':', ..] => Some(value + 1..line.end),
        _ => None,
    }
}

/// The spans of the lines that are not blank, without their line ends.
fn lines(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    memchr::memchr2_iter(b'\n', b'\r', bytes)
        .chain(std::iter::once(bytes.len()))
        .map(move |end| {
            let span = start..end;
            start = end + 1;
            span
        })
        .filter(|span| !span.is_empty())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    LineStart,
    InLine,
    /// After a carriage return that ended a line. A line feed right after it is part of the same
    /// line end.
    LineReturn,
    /// After a carriage return that ended the frame. A line feed right after it is part of the
    /// frame.
    FrameReturn,
}

/// Takes chunks and returns frames.
#[derive(Debug)]
pub struct Splitter {
    /// The start of a frame, from earlier chunks.
    carry: BytesMut,
    chunk: Bytes,
    /// The number of bytes of `chunk` that were searched.
    scanned: usize,
    at: State,
    lines: FrameLines,
    event_bytes_max: usize,
}

impl Default for Splitter {
    fn default() -> Self {
        Self::new(EVENT_BYTES_MAX)
    }
}

impl Splitter {
    /// A splitter that refuses frames larger than `event_bytes_max`.
    pub fn new(event_bytes_max: usize) -> Self {
        Self {
            carry: BytesMut::new(),
            chunk: Bytes::new(),
            scanned: 0,
            at: State::LineStart,
            lines: FrameLines::default(),
            event_bytes_max,
        }
    }

    /// Takes the next chunk. The caller must have taken all frames of the previous chunk.
    pub fn push(&mut self, chunk: Bytes) {
        if self.chunk.is_empty() {
            self.chunk = chunk;
            self.scanned = 0;
        } else {
            let mut whole = BytesMut::from(&self.chunk[..]);
            whole.extend_from_slice(&chunk);
            self.chunk = whole.freeze();
        }
    }

    /// The next complete frame.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, TooLarge> {
        if self.scan() {
            let whole = self.carry.is_empty();
            let part = self.chunk.split_to(self.scanned);
            self.scanned = 0;
            self.at = State::LineStart;
            let bytes = if whole {
                part
            } else {
                self.carry.extend_from_slice(&part);
                std::mem::take(&mut self.carry).freeze()
            };
            let lines = std::mem::take(&mut self.lines);
            if bytes.len() > self.event_bytes_max {
                return Err(TooLarge(self.event_bytes_max));
            }
            return Ok(Some(Frame { bytes, lines }));
        }
        let length = self.carry.len().saturating_add(self.chunk.len());
        if length > self.event_bytes_max {
            return Err(TooLarge(self.event_bytes_max));
        }
        self.carry.extend_from_slice(&self.chunk);
        self.chunk.clear();
        self.scanned = 0;
        Ok(None)
    }

    /// The number of bytes of the incomplete frame.
    pub fn held_bytes(&self) -> usize {
        self.carry.len().saturating_add(self.chunk.len())
    }

    /// The data in the first line of the incomplete frame, once that line is complete.
    pub(crate) fn pending_data(&self) -> Option<&[u8]> {
        if self.lines.count == 0 {
            return None;
        }
        self.carry.get(data_in(&self.carry, 0..self.lines.first)?)
    }

    /// Ends the stream and returns the remaining bytes as a frame.
    pub fn finish(&mut self) -> Option<Frame> {
        let mut lines = std::mem::take(&mut self.lines);
        if lines.count == 0 {
            lines.first = self.carry.len();
        }
        if self.at == State::InLine {
            lines.count += 1;
        }
        self.at = State::LineStart;
        let bytes = std::mem::take(&mut self.carry).freeze();
        (!bytes.is_empty()).then_some(Frame { bytes, lines })
    }

    /// Searches for the end of the frame in the bytes that were not searched yet.
    fn scan(&mut self) -> bool {
        while let Some(&byte) = self.chunk.get(self.scanned) {
            match (self.at, byte) {
                (State::LineStart, b'\n') => {
                    self.scanned += 1;
                    return true;
                }
                (State::LineStart, b'\r') => {
                    self.scanned += 1;
                    self.at = State::FrameReturn;
                }
                (State::LineStart, _) => self.at = State::InLine,
                (State::InLine, _) => {
                    let rest = self.chunk.get(self.scanned..).unwrap_or_default();
                    let Some(length) = memchr::memchr2(b'\n', b'\r', rest) else {
                        self.scanned = self.chunk.len();
                        return false;
                    };
                    let end = self.scanned + length;
                    if self.lines.count == 0 {
                        self.lines.first = self.carry.len() + end;
                    }
                    self.lines.count += 1;
                    let feed = self.chunk.get(end) == Some(&b'\n');
                    self.at = if feed {
                        State::LineStart
                    } else {
                        State::LineReturn
                    };
                    self.scanned = end + 1;
                }
                (State::LineReturn, _) => {
                    self.scanned += usize::from(byte == b'\n');
                    self.at = State::LineStart;
                }
                (State::FrameReturn, _) => {
                    self.scanned += usize::from(byte == b'\n');
                    return true;
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests;
