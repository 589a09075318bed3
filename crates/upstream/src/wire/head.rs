//! Parses response heads. Only the fields of `Head` are kept.

use std::mem::MaybeUninit;

use bytes::{Buf, BytesMut};
use http::HeaderValue;

use super::chunked::Chunked;
use super::framing::Framing;
use super::malformed::Malformed;
use crate::retry_after::{self, RetryAfter};

/// The maximum size of a response head, including the status line.
pub(crate) const HEAD_BYTES_MAX: usize = 64 * 1024;
const FIELDS_MAX: usize = 128;
/// The maximum number of provisional (1xx) responses before the final one.
const PROVISIONAL_MAX: u8 = 8;

/// The fields of a response head that are kept. No other field leaves this module (K5).
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) content_type: Option<HeaderValue>,
    pub(crate) retry_after: Option<RetryAfter>,
    /// The name of an error. Some upstreams send it only in the head.
    pub(crate) error_name: Option<HeaderValue>,
    /// The target of a redirect.
    pub(crate) location: Option<HeaderValue>,
    pub(crate) framing: Framing,
    /// Whether the connection can be reused.
    pub(crate) keep_alive: bool,
    /// The `sec-websocket-accept` value, if the upstream switched to WebSocket.
    pub(crate) accept: Option<HeaderValue>,
}

/// Takes the response head at the front of `buf` and skips provisional heads before it. The head
/// must not exceed `bytes_max`. `None` means that more bytes are needed.
pub(crate) fn take(
    buf: &mut BytesMut,
    provisional: &mut u8,
    bytes_max: usize,
) -> Result<Option<Head>, Malformed> {
    while !buf.is_empty() {
        // Left uninitialised, because clearing the unused entries would cost more than parsing the
        // used ones.
        let mut fields = [const { MaybeUninit::uninit() }; FIELDS_MAX];
        let mut answer = httparse::Response::new(&mut []);
        let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
            &mut answer,
            buf,
            &mut fields,
        );
        let length = match parsed {
            Ok(httparse::Status::Complete(length)) if length <= bytes_max => length,
            Ok(httparse::Status::Partial) if buf.len() <= bytes_max => return Ok(None),
            Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(Malformed::HeadTooLarge),
            Err(_) => return Err(Malformed::Head),
        };
        let status = answer.code.unwrap_or_default();
        let head = match status {
            // The code that sent the handshake compares `accept` with its key.
            101 => {
                let head = read(status, true, answer.headers)?;
                let switched = head.accept.is_some();
                Some(switched.then_some(head).ok_or(Malformed::Switching)?)
            }
            100..200 => None,
            200..1000 => Some(read(status, answer.version == Some(1), answer.headers)?),
            _ => return Err(Malformed::Head),
        };
        buf.advance(length);
        if head.is_some() {
            return Ok(head);
        }
        *provisional += 1;
        if *provisional > PROVISIONAL_MAX {
            return Err(Malformed::Head);
        }
    }
    Ok(None)
}

fn read(status: u16, http_1_1: bool, fields: &[httparse::Header<'_>]) -> Result<Head, Malformed> {
    let mut content_type = None;
    let mut length = None;
    let mut chunked = false;
    let mut keep_alive = http_1_1;
    let mut date = None;
    let mut retry_after = None;
    let mut retry_after_ms = None;
    let mut error_name = None;
    let mut location = None;
    let mut accept = None;
    for field in fields {
        let (name, value) = (field.name, field.value);
        // Compare the length first, because most fields are not kept.
        match name.len() {
            4 if name.eq_ignore_ascii_case("date") => date = Some(value),
            8 if (300..400).contains(&status) && name.eq_ignore_ascii_case("location") => {
                location = HeaderValue::from_bytes(value).ok();
            }
            10 if name.eq_ignore_ascii_case("connection") => {
                keep_alive = keeps_alive(value, keep_alive);
            }
            11 if name.eq_ignore_ascii_case("retry-after") => {
                retry_after = Some(value);
            }
            12 if name.eq_ignore_ascii_case("content-type") => {
                content_type = media_type(value);
            }
            14 if name.eq_ignore_ascii_case("content-length") => {
                let found = digits(value).ok_or(Malformed::Length)?;
                if length.is_some_and(|before| before != found) {
                    return Err(Malformed::Length);
                }
                length = Some(found);
            }
            14 if name.eq_ignore_ascii_case("retry-after-ms") => {
                retry_after_ms = retry_after::milliseconds(value);
            }
            16 if name.eq_ignore_ascii_case("content-encoding") => {
                let identity = value.trim_ascii().eq_ignore_ascii_case(b"identity");
                if !identity && !value.trim_ascii().is_empty() {
                    return Err(Malformed::Encoded);
                }
            }
            20 if status == 101 && name.eq_ignore_ascii_case("sec-websocket-accept") => {
                accept = HeaderValue::from_bytes(value).ok();
            }
            16 if status >= 400 && name.eq_ignore_ascii_case("x-amzn-errortype") => {
                error_name = HeaderValue::from_bytes(value).ok();
            }
            17 if name.eq_ignore_ascii_case("transfer-encoding") => {
                // Exactly one coding is accepted. With any other list, the end of the body would be
                // a guess.
                if chunked || !http_1_1 || !value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                    return Err(Malformed::Length);
                }
                chunked = true;
            }
            _ => {}
        }
    }
    let framing = match (status, length) {
        (101 | 204 | 304, _) => Framing::Length(0),
        _ if chunked => Framing::Chunked(Chunked::Size),
        (_, Some(length)) => Framing::Length(length),
        (_, None) => Framing::UntilClose,
    };
    let seconds = |value| retry_after::seconds(value, date);
    // Chunked coding takes precedence over a length, but a connection that sent both is not reused
    // (RFC 9112 section 6.3).
    let doubtful = chunked && length.is_some();
    Ok(Head {
        status,
        content_type,
        retry_after: retry_after_ms.or_else(|| retry_after.and_then(seconds)),
        error_name,
        location,
        keep_alive: keep_alive && !doubtful && accept.is_none() && framing != Framing::UntilClose,
        framing,
        accept,
    })
}

fn keeps_alive(value: &[u8], before: bool) -> bool {
    let mut keep_alive = before;
    for token in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
        if token.eq_ignore_ascii_case(b"close") {
            return false;
        }
        keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
    }
    keep_alive
}

/// Returns the two most common types as static values, which need no allocation.
fn media_type(value: &[u8]) -> Option<HeaderValue> {
    match value {
        b"application/json" => Some(HeaderValue::from_static("application/json")),
        b"text/event-stream" => Some(HeaderValue::from_static("text/event-stream")),
        _ => HeaderValue::from_bytes(value).ok(),
    }
}

/// Parses a length, which has only digits and fits in 64 bits.
fn digits(value: &[u8]) -> Option<u64> {
    let value = value.trim_ascii();
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn head(text: &str) -> Result<Option<Head>, Malformed> {
        take(&mut BytesMut::from(text), &mut 0, HEAD_BYTES_MAX)
    }

    #[test]
    fn the_end_of_the_body_and_of_the_connection_are_read() {
        let chunked = Framing::Chunked(Chunked::Size);
        for (text, framing, keep_alive) in [
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n",
                Framing::Length(5),
                true,
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length:  5 \r\nCONTENT-LENGTH: 5\r\n\r\n",
                Framing::Length(5),
                true,
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n",
                chunked,
                true,
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
                chunked,
                false,
            ),
            (
                "HTTP/1.1 200 OK\r\nconnection: Close\r\ncontent-length: 0\r\n\r\n",
                Framing::Length(0),
                false,
            ),
            (
                "HTTP/1.1 200 OK\r\nconnection: x, close\r\ncontent-length: 1\r\n\r\n",
                Framing::Length(1),
                false,
            ),
            (
                "HTTP/1.1 200 OK\r\nconnection: keep-alive\r\n\r\n",
                Framing::UntilClose,
                false,
            ),
            (
                "HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\n",
                Framing::Length(5),
                false,
            ),
            (
                "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 5\r\n\r\n",
                Framing::Length(5),
                true,
            ),
            ("HTTP/1.1 204 No Content\r\n\r\n", Framing::Length(0), true),
            (
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n",
                Framing::Length(2),
                true,
            ),
            (
                "HTTP/1.1 200\r\ncontent-encoding: identity\r\ncontent-length: 2\r\n\r\n",
                Framing::Length(2),
                true,
            ),
        ] {
            let head = head(text).unwrap().unwrap();
            assert_eq!(
                (head.framing, head.keep_alive),
                (framing, keep_alive),
                "{text}"
            );
        }
    }

    #[test]
    fn a_head_that_cannot_be_trusted_is_refused() {
        let large = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(70_000));
        let endless = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(70_000));
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(200));
        let provisional = "HTTP/1.1 100 Continue\r\n\r\n".repeat(20);
        for (text, why) in [
            ("SSH-2.0-OpenSSH\r\n", Malformed::Head),
            ("HTTP/2.0 200 OK\r\n\r\n", Malformed::Head),
            ("HTTP/1.1 099 Low\r\n\r\n", Malformed::Head),
            ("HTTP/1.1 200 OK\r\nbad header\r\n\r\n", Malformed::Head),
            (&provisional, Malformed::Head),
            (&large, Malformed::HeadTooLarge),
            (&endless, Malformed::HeadTooLarge),
            (&many, Malformed::HeadTooLarge),
            (
                "HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n",
                Malformed::Switching,
            ),
            (
                "HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\n",
                Malformed::Length,
            ),
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 5, 5\r\n\r\n",
                Malformed::Length,
            ),
            (
                "HTTP/1.1 200 OK\r\ncontent-length: +5\r\n\r\n",
                Malformed::Length,
            ),
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n",
                Malformed::Length,
            ),
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n",
                Malformed::Length,
            ),
            (
                "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
                Malformed::Length,
            ),
            (
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n",
                Malformed::Length,
            ),
            (
                "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
                Malformed::Length,
            ),
            (
                "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n",
                Malformed::Encoded,
            ),
        ] {
            assert_eq!(head(text), Err(why), "{}", text.get(..60).unwrap_or(text));
        }
    }

    #[test]
    fn a_head_is_waited_for_at_every_cut() {
        let text = "HTTP/1.1 429 Slow\r\ncontent-type: application/json\r\nretry-after: 7\r\ncontent-length: 2\r\n\r\n{}";
        let whole = text.len() - 2;
        for cut in 0..whole {
            assert_eq!(head(&text[..cut]), Ok(None), "{cut}");
        }
        let mut buf = BytesMut::from(text);
        let head = take(&mut buf, &mut 0, HEAD_BYTES_MAX).unwrap().unwrap();
        assert_eq!(buf, "{}");
        assert_eq!(head.status, 429);
        assert_eq!(head.content_type.unwrap(), "application/json");
        let seven = RetryAfter::In(Duration::from_secs(7));
        assert_eq!(head.retry_after, Some(seven));
    }

    #[test]
    fn only_an_error_has_a_name() {
        for (status, kept) in [(400, true), (503, true), (200, false)] {
            let text = format!("HTTP/1.1 {status} X\r\nX-Amzn-ErrorType: Throttled\r\n\r\n");
            let head = head(&text).unwrap().unwrap();
            assert_eq!(head.error_name.is_some(), kept, "{status}");
        }
    }

    #[test]
    fn only_a_redirect_has_a_place_it_leads_to() {
        for (status, kept) in [(302, true), (308, true), (200, false), (201, false)] {
            let text = format!("HTTP/1.1 {status} X\r\nLocation: /y\r\n\r\n");
            let head = head(&text).unwrap().unwrap();
            assert_eq!(head.location.is_some(), kept, "{status}");
        }
    }
}
