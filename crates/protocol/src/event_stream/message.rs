//! Splits a byte stream into messages: a prelude with lengths, headers, a payload, two checksums.
//!
//! The messages do not depend on how the bytes are split into reads.

use bytes::{Buf, Bytes, BytesMut};

use crate::sse::EVENT_BYTES_MAX;

/// The size of the prelude: two lengths and their checksum.
const PRELUDE_BYTES: usize = 12;
const CHECKSUM_BYTES: usize = 4;
/// The maximum size of a message. Events have the same limit, because a payload becomes an event.
const MESSAGE_BYTES_MAX: usize = EVENT_BYTES_MAX;
const HEADER_BYTES_MAX: usize = 128 << 10;

/// The maximum number of headers per message. Real messages have three or four.
const HEADERS_MAX: usize = 64;

/// Why bytes are not a valid message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The lengths contradict each other, or exceed the limits.
    #[error("a message of the event stream has impossible lengths")]
    Length,
    /// A checksum does not match.
    #[error("a message of the event stream has a wrong checksum")]
    Checksum,
    /// The headers are unreadable or too many, a name occurs twice, or a needed header is missing.
    #[error("a message of the event stream has malformed headers")]
    Headers,
    /// The payload does not match its headers.
    #[error("a message of the event stream has a malformed payload")]
    Payload,
    /// The stream ended within a message.
    #[error("the event stream ended within a message")]
    Cut,
}

/// One message. Only headers that are strings are kept, because no others are used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    headers: Vec<(Bytes, Bytes)>,
    /// The bytes between the headers and the checksum.
    pub payload: Bytes,
}

impl Message {
    /// The value of a header, if it is a string.
    pub fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self
            .headers
            .iter()
            .find(|(found, _)| found == name.as_bytes())?;
        std::str::from_utf8(value).ok()
    }
}

/// Takes the message at the front of `buf`. `None` means that more bytes are needed.
pub(super) fn take(buf: &mut BytesMut) -> Result<Option<Message>, Malformed> {
    let Some(total) = check_prelude(buf)? else {
        return Ok(None);
    };
    if buf.len() < total {
        return Ok(None);
    }
    let mut message = buf.split_to(total).freeze();
    let body = message.split_to(total - CHECKSUM_BYTES);
    if crc32fast::hash(&body) != message.get_u32() {
        return Err(Malformed::Checksum);
    }
    let headers_bytes = body.slice(4..).get_u32();
    let mut headers = body.slice(PRELUDE_BYTES..);
    let headers_bytes = usize::try_from(headers_bytes).map_err(|_| Malformed::Length)?;
    let payload = headers.split_off(headers_bytes);
    Ok(Some(Message {
        headers: read_headers(headers)?,
        payload,
    }))
}

/// The length of the message, once its prelude has arrived. A wrong length is refused here, before
/// waiting for more bytes.
fn check_prelude(buf: &BytesMut) -> Result<Option<usize>, Malformed> {
    let Some(mut prelude) = buf.get(..PRELUDE_BYTES) else {
        return Ok(None);
    };
    let checksum = crc32fast::hash(prelude.get(..8).unwrap_or_default());
    let total = prelude.get_u32();
    let headers = prelude.get_u32();
    if checksum != prelude.get_u32() {
        return Err(Malformed::Checksum);
    }
    let sizes = (usize::try_from(total), usize::try_from(headers));
    let (Ok(total), Ok(headers)) = sizes else {
        return Err(Malformed::Length);
    };
    let around = PRELUDE_BYTES + CHECKSUM_BYTES;
    let fits = headers <= HEADER_BYTES_MAX
        && total <= MESSAGE_BYTES_MAX
        && total
            .checked_sub(around)
            .is_some_and(|rest| headers <= rest);
    if !fits {
        return Err(Malformed::Length);
    }
    Ok(Some(total))
}

fn read_headers(mut bytes: Bytes) -> Result<Vec<(Bytes, Bytes)>, Malformed> {
    let mut names: Vec<Bytes> = Vec::new();
    let mut strings = Vec::new();
    while !bytes.is_empty() {
        let length = usize::from(bytes.try_get_u8().map_err(|_| Malformed::Headers)?);
        let name = cut(&mut bytes, length)?;
        if names.len() == HEADERS_MAX || names.contains(&name) {
            return Err(Malformed::Headers);
        }
        names.push(name.clone());
        let kind = bytes.try_get_u8().map_err(|_| Malformed::Headers)?;
        let length = match kind {
            // True and false.
            0 | 1 => 0,
            // Integers of one to eight bytes, and times, which have eight.
            2 => 1,
            3 => 2,
            4 => 4,
            5 | 8 => 8,
            // Bytes and strings.
            6 | 7 => usize::from(bytes.try_get_u16().map_err(|_| Malformed::Headers)?),
            // A UUID.
            9 => 16,
            _ => return Err(Malformed::Headers),
        };
        let value = cut(&mut bytes, length)?;
        if kind == 7 {
            strings.push((name, value));
        }
    }
    Ok(strings)
}

fn cut(bytes: &mut Bytes, length: usize) -> Result<Bytes, Malformed> {
    if length > bytes.len() {
        return Err(Malformed::Headers);
    }
    Ok(bytes.split_to(length))
}
