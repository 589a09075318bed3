//! Tests which requests the reader accepts, for every way to split the bytes.

use super::reader::*;

fn read(message: &str, cut: usize) -> FramingReader {
    let mut framing = FramingReader::default();
    let (start, end) = message.as_bytes().split_at(cut);
    framing.read(start);
    framing.read(end);
    framing
}

#[test]
fn requests_are_told_apart_however_they_are_cut() {
    use FramingError::{Coding, Host, Length, LengthAndCoding, Unreadable};
    const GET: &str = "GET / HTTP/1.1\r\nHost: g\r\n\r\n";
    let (long, blanks) = ("x".repeat(200), " ".repeat(64));
    let table = [
        (
            "POST / HTTP/1.1\r\nHost: g\r\nContent-Length: 5\r\n\r\nhello",
            2,
            None,
        ),
        (
            "POST / HTTP/1.1\r\nHost: g\r\ncontent-length:\t0 \r\n\r\n",
            2,
            None,
        ),
        (
            "\r\n\nPOST / HTTP/1.1\nhOST:g\nTransfer-Encoding: Chunked\n\n2;a=b\r\nhi\r\n0\r\nT: v\r\n\r\n",
            2,
            None,
        ),
        ("GET / HTTP/1.0\r\n\r\n", 2, None),
        (
            &format!("GET /{long} HTTP/1.1\r\nX-Content-Length: 5\r\nHost: {long}\r\n\r\n"),
            2,
            None,
        ),
        (
            "POST / HTTP/1.1\r\nHost: g\r\nContent-Length: 5\r\nTRANSFER-ENCODING: chunked\r\n\r\n0\r\n\r\n",
            0,
            Some(LengthAndCoding),
        ),
        (
            "POST / HTTP/1.1\nTransfer-Encoding: chunked\nHost: g\nContent-Length:5\n\n",
            0,
            Some(LengthAndCoding),
        ),
        (
            "POST / HTTP/1.1\r\nHost: g\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
            0,
            Some(Length),
        ),
        (
            "POST / HTTP/1.1\r\nHost: g\r\nContent-Length: 5, 5\r\n\r\nhello",
            0,
            Some(Length),
        ),
        (
            "POST / HTTP/1.1\r\nHost: g\r\nContent-Length:\r\n\r\n",
            0,
            Some(Length),
        ),
        (
            "POST / HTTP/1.1\r\nHost: g\r\nContent-Length: 99999999999999999999\r\n\r\n",
            0,
            Some(Length),
        ),
        (
            "POST / HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            0,
            Some(Coding),
        ),
        (
            "POST / HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            0,
            Some(Coding),
        ),
        (
            "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            0,
            Some(Coding),
        ),
        (
            &format!("POST / HTTP/1.1\r\nHost: g\r\nContent-Length:{blanks}5\r\n\r\nhello"),
            0,
            Some(Length),
        ),
        ("GET / HTTP/1.1\r\n\r\n", 0, Some(Host)),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
            0,
            Some(Host),
        ),
        ("GET / HTTP/3.0\r\nHost: g\r\n\r\n", 0, Some(Unreadable)),
        (
            "POST / HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            1,
            Some(Unreadable),
        ),
    ];
    for (message, accepted, why) in table {
        // The request is sent between two others.
        let message = &format!("{GET}{message}{GET}");
        for cut in 0..=message.len() {
            let framing = read(message, cut);
            assert_eq!(framing.accepted, accepted + 1, "{message:?} cut at {cut}");
            assert_eq!(framing.refused, why, "{message:?} cut at {cut}");
        }
    }
}

#[test]
fn http2_begins_a_connection_and_nothing_else() {
    let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for cut in 0..=preface.len() {
        assert!(read(preface, cut).is_http2(), "cut at {cut}");
    }
    let head = "POST / HTTP/1.1\r\nHost: g\r\nContent-Length: 90\r\n\r\n";
    assert!(!read(&format!("{head}{preface}"), head.len()).is_http2());
    let head = "GET / HTTP/1.1\r\nHost: g\r\n\r\n";
    assert!(!read(&format!("{head}{preface}"), head.len()).is_http2());
}

#[test]
fn reasons_have_their_numbers() {
    for why in FramingError::ALL {
        assert_eq!(FramingError::of_number(why as u8), Some(why));
    }
    assert_eq!(FramingError::of_number(255), None);
}
