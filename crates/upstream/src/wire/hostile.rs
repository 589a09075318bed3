//! Properties of the parsers that hold for any bytes from an upstream. The functions are the bodies
//! of the fuzz targets; the tests run them for a limited time.

use bytes::BytesMut;

use super::chunked::Chunked;
use super::head::{HEAD_BYTES_MAX, Head, take};
use super::malformed::Malformed;

/// Checks that the parsed head and body of a response do not depend on how its bytes were split. The body is never
/// longer than the input.
#[cfg_attr(
    not(fuzzing),
    expect(unreachable_pub, reason = "the fuzz target is another crate")
)]
pub fn any_head(data: &[u8]) {
    let whole = read(data, data.len().max(1));
    let sum = data.iter().fold(data.len(), |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(usize::from(*byte))
    });
    for size in [1 + sum % 5, 1 + sum % 97] {
        assert_eq!(read(data, size), whole, "in pieces of {size}");
    }
    assert!(whole.1.len() <= data.len());
}

/// The head, the body so far, and the error.
type Answer = (Option<Head>, Vec<u8>, Option<Malformed>);

fn read(data: &[u8], size: usize) -> Answer {
    let mut buf = BytesMut::new();
    let mut provisional = 0;
    let mut head: Option<Head> = None;
    let mut framing = None;
    let mut body = Vec::new();
    for piece in data.chunks(size) {
        buf.extend_from_slice(piece);
        if head.is_none() {
            match take(&mut buf, &mut provisional, HEAD_BYTES_MAX) {
                Ok(found) => head = found,
                Err(wrong) => return (None, body, Some(wrong)),
            }
            framing = head.as_ref().map(|head| head.framing);
        }
        let Some(framing) = &mut framing else {
            continue;
        };
        loop {
            match framing.take(&mut buf) {
                Ok(Some(piece)) => body.extend_from_slice(&piece),
                Ok(None) => break,
                Err(wrong) => return (head, body, Some(wrong)),
            }
        }
    }
    (head, body, None)
}

/// Checks that a chunked body gives the same result as with a simple parser of the whole input, however its bytes were
/// split. Bytes after the end of the body must stay in the buffer.
#[cfg_attr(
    not(fuzzing),
    expect(unreachable_pub, reason = "the fuzz target is another crate")
)]
pub fn any_chunked(data: &[u8]) {
    let plain = read_plainly(data);
    for size in [1 + data.len() % 5, 61, data.len().max(1)] {
        assert_eq!(read_chunks(data, size), plain, "in pieces of {size}");
    }
}

/// How reading a chunked body ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// The body is incomplete.
    Open,
    /// The body ended, and these bytes follow it.
    Whole(Vec<u8>),
    Bad,
}

fn read_chunks(data: &[u8], size: usize) -> (Vec<u8>, End) {
    let mut chunked = Chunked::Size;
    let (mut buf, mut body) = (BytesMut::new(), Vec::new());
    for piece in data.chunks(size) {
        buf.extend_from_slice(piece);
        loop {
            match chunked.take(&mut buf) {
                Ok(Some(piece)) => body.extend_from_slice(&piece),
                Ok(None) => break,
                Err(_) => return (body, End::Bad),
            }
        }
    }
    let end = match chunked {
        Chunked::Ended => End::Whole(buf.to_vec()),
        _ => End::Open,
    };
    (body, end)
}

/// Parses RFC 9112 section 7.1 line by line and chunk by chunk, without regard to speed.
fn read_plainly(data: &[u8]) -> (Vec<u8>, End) {
    /// The same limits as in `Chunked`.
    const LINE_MAX: usize = 1024;
    const TRAILERS_MAX: usize = 16 * 1024;
    let mut body = Vec::new();
    let mut rest = data;
    loop {
        let Some(end) = rest.iter().position(|&byte| byte == b'\n') else {
            let end = if rest.len() > LINE_MAX {
                End::Bad
            } else {
                End::Open
            };
            return (body, end);
        };
        let behind = &rest[end + 1..];
        let line = rest[..end].strip_suffix(b"\r");
        let line = line.filter(|line| end <= LINE_MAX && !line.contains(&b'\r'));
        let Some(size) = line.and_then(size_of) else {
            return (body, End::Bad);
        };
        if size == 0 {
            rest = behind;
            break;
        }
        let there = usize::try_from(size)
            .unwrap_or(usize::MAX)
            .min(behind.len());
        body.extend_from_slice(&behind[..there]);
        rest = &behind[there..];
        match rest {
            [b'\r', b'\n', ..] => rest = &rest[2..],
            [] | [b'\r'] => return (body, End::Open),
            _ => return (body, End::Bad),
        }
    }
    let mut trailers = 0;
    loop {
        let Some(end) = rest.iter().position(|&byte| byte == b'\n') else {
            let is_bad = trailers + rest.len() > TRAILERS_MAX;
            return (body, if is_bad { End::Bad } else { End::Open });
        };
        trailers += end + 1;
        match rest[..end].strip_suffix(b"\r") {
            _ if trailers > TRAILERS_MAX => return (body, End::Bad),
            None => return (body, End::Bad),
            Some([]) => return (body, End::Whole(rest[end + 1..].to_vec())),
            Some(_) => rest = &rest[end + 1..],
        }
    }
}

/// Parses the size at the beginning of a line. Only an extension or blanks may follow it.
fn size_of(line: &[u8]) -> Option<u64> {
    let digits = line.iter().position(|byte| !byte.is_ascii_hexdigit());
    let (digits, behind) = line.split_at(digits.unwrap_or(line.len()));
    let is_end = behind.first().is_none_or(|byte| b"; \t".contains(byte));
    let text = std::str::from_utf8(digits).ok()?;
    let size = u64::from_str_radix(text, 16).ok()?;
    (is_end && digits.len() <= 15).then_some(size)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::driver;
    use super::*;

    const TOKENS: [&[u8]; 12] = [
        b"\r\n",
        b"\r",
        b"\n",
        b"0\r\n\r\n",
        b"0",
        b"f\r\n",
        b"ffffffffffffffff",
        b";x=y",
        b"\r\n\r\n",
        b"content-length: 5\r\n",
        b"transfer-encoding: chunked\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
    ];

    fn run_on(name: &str, body: fn(&[u8])) {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/");
        let seeds = driver::seeds(format!("{folder}{name}"), "");
        driver::run(&seeds, &TOKENS, 2_000, body);
    }

    #[test]
    fn answers_hold_for_any_bytes() {
        run_on("upstream_head", any_head);
    }

    #[test]
    fn chunked_bodies_hold_for_any_bytes() {
        run_on("chunked", any_chunked);
    }

    const LINES: [&str; 16] = [
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.0 404 No\r\n",
        "content-length: 5\r\n",
        "content-length: 18446744073709551616\r\n",
        "transfer-encoding: chunked\r\n",
        "transfer-encoding: gzip, chunked\r\n",
        "retry-after: 99999999999999999999\r\n",
        "retry-after: Fri, 31 Dec 9999 23:59:59 GMT\r\n",
        "date: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
        "connection: close\r\n",
        "\r\n",
        "5\r\nhello\r\n",
        "ffffffffffffffff\r\n",
        "0\r\n\r\n",
        "0;x=y\r\ntrailer: z\r\n\r\n",
    ];

    proptest! {
        #[test]
        fn any_bytes_are_read_alike_in_any_pieces(
            lines in prop::collection::vec(prop::sample::select(&LINES[..]), 0..12),
            noise in prop::collection::vec(any::<u8>(), 0..6),
            share in 0_usize..100,
        ) {
            let mut data = lines.concat().into_bytes();
            let at = data.len() * share / 100;
            data.splice(at..at, noise);
            any_head(&data);
        }
    }
}
