//! What holds for any bytes from an upstream: the body of a fuzz target, and of a bounded run in
//! the tests.

use bytes::BytesMut;

use super::framing::Malformed;
use super::head::{HEAD_BYTES_MAX, Head, take};

/// The head and the body of an answer do not depend on how its bytes were cut, and never hold more
/// than came.
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

/// The head, the body as far as it goes, and what was wrong.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
