//! Tests that the framing reader and hyper see the same requests, for arbitrary bytes cut anywhere.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::header::CONNECTION;
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::chunks::ChunkedBody;
use super::reader::{FramingReader, Position};
use crate::limits::{HEADERS_MAX, READ_BUFFER_BYTES};

/// A request as our reader or hyper sees it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct SeenRequest {
    target: String,
    body: Vec<u8>,
    is_whole: bool,
}

/// Asserts that our reader and hyper see the same requests in these bytes, up to the first one that is refused. The
/// bytes also determine the sizes of the pieces in which they arrive.
#[cfg_attr(
    not(fuzzing),
    expect(unreachable_pub, reason = "the fuzz target is another crate")
)]
pub fn any_requests(data: &[u8]) {
    let sum = data.iter().fold(data.len(), |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(usize::from(*byte))
    });
    let (ours, refused_at) = read_by_us(data);
    for size in [data.len().max(1), 1 + sum % 5, 1 + sum % 97] {
        let mut framing = FramingReader::default();
        for piece in data.chunks(size) {
            framing.read(piece);
        }
        let refused = framing.refused().map(|(at, _)| at);
        assert_eq!(refused, refused_at, "in pieces of {size}");
        compare(data, size, &ours, refused_at);
    }
}

fn compare(data: &[u8], size: usize, ours: &[SeenRequest], refused_at: Option<u64>) {
    let theirs = read_by_library(data, size);
    let case = || format!("in pieces of {size}: {}", data.escape_ascii());
    for (index, seen) in theirs.requests.iter().enumerate() {
        if refused_at == Some(index as u64) {
            assert_eq!(
                theirs.requests.len(),
                index + 1,
                "served after a refusal {}",
                case()
            );
            return;
        }
        let known = ours.get(index);
        let known = known.unwrap_or_else(|| panic!("request {index} is unknown {}", case()));
        assert_eq!(known.target, seen.target, "{}", case());
        // If a body turns out to be invalid, its request is served and the next one is refused.
        let is_invalid_body = !known.is_whole && refused_at == Some(index as u64 + 1);
        if is_invalid_body {
            assert!(seen.body.starts_with(&known.body), "{}", case());
        } else if seen.is_whole {
            assert_eq!(known, seen, "{}", case());
        }
    }
    if !theirs.has_closed {
        assert_eq!(
            ours.len(),
            theirs.requests.len(),
            "the library saw fewer {}",
            case()
        );
    }
}

/// Reads byte by byte, to see the position of each byte.
fn read_by_us(data: &[u8]) -> (Vec<SeenRequest>, Option<u64>) {
    let mut framing = FramingReader::default();
    let mut seen: Vec<SeenRequest> = Vec::new();
    let mut line: Vec<u8> = Vec::new();
    for byte in data {
        let (position, accepted) = (framing.position, framing.accepted);
        framing.read(std::slice::from_ref(byte));
        match position {
            Position::RequestLine if framing.position == Position::Headers => {
                let text = String::from_utf8_lossy(&line);
                let target = text.split(' ').nth(1).unwrap_or_default().to_owned();
                seen.push(SeenRequest {
                    target,
                    ..SeenRequest::default()
                });
                line.clear();
            }
            Position::RequestLine if *byte == b'\n' => line.clear(),
            Position::RequestLine => line.push(*byte),
            Position::Body { .. } | Position::Chunks(ChunkedBody::Data { .. }) => {
                let last = seen.last_mut().expect("a body has a head");
                last.body.push(*byte);
            }
            Position::Headers | Position::Chunks(_) | Position::Unread => {}
        }
        let has_body_ended = matches!(position, Position::Body { .. } | Position::Chunks(_))
            && framing.position == Position::RequestLine;
        let has_no_body = framing.accepted > accepted && framing.position == Position::RequestLine;
        if has_body_ended || has_no_body {
            let last = seen.last_mut().expect("an end has a beginning");
            last.is_whole = true;
        }
    }
    // An incomplete or refused head does not count as a request.
    seen.truncate(usize::try_from(framing.accepted).expect("as many as bytes at most"));
    (seen, framing.refused().map(|(at, _)| at))
}

#[derive(Debug, Default)]
struct LibraryView {
    requests: Vec<SeenRequest>,
    /// hyper stops reading, because of an error or because a request asked it to close.
    has_closed: bool,
}

fn read_by_library(data: &[u8], size: usize) -> LibraryView {
    let shared = Arc::new(Mutex::new(LibraryView::default()));
    let script = Script {
        pieces: data.chunks(size).map(<[u8]>::to_vec).rev().collect(),
        framing: Arc::default(),
    };
    let (view, framing) = (Arc::clone(&shared), Arc::clone(&script.framing));
    let service = service_fn(move |request: Request<Incoming>| {
        let (view, framing) = (Arc::clone(&view), Arc::clone(&framing));
        async move { Ok::<_, Infallible>(answer(request, &view, &framing).await) }
    });
    let connection = http1::Builder::new()
        .half_close(true)
        .max_buf_size(READ_BUFFER_BYTES)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(script), service);
    let ended = run(std::pin::pin!(connection));
    let mut theirs = std::mem::take(&mut *shared.lock());
    theirs.has_closed |= ended.is_err();
    theirs
}

/// Polls a future until it is ready, without a runtime. The future never waits for anything outside.
fn run<F: Future>(mut future: Pin<&mut F>) -> F::Output {
    const POLLS_MAX: usize = 1_000_000;
    let cx = &mut Context::from_waker(Waker::noop());
    for _ in 0..POLLS_MAX {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return output;
        }
    }
    panic!("the connection never ends");
}

/// Answers like the gateway: refusing a request closes the connection.
async fn answer(
    request: Request<Incoming>,
    view: &Mutex<LibraryView>,
    framing: &Mutex<FramingReader>,
) -> Response<Empty<Bytes>> {
    let mut response = Response::new(Empty::new());
    let (parts, mut body) = request.into_parts();
    let mut seen = SeenRequest {
        target: parts.uri.to_string(),
        ..SeenRequest::default()
    };
    let index = view.lock().requests.len() as u64;
    view.lock().requests.push(SeenRequest::default());
    let is_refused = framing.lock().refused().is_some_and(|(at, _)| at <= index);
    if is_refused {
        response
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    } else {
        seen.is_whole = loop {
            match body.frame().await {
                None => break true,
                Some(Err(_)) => break false,
                Some(Ok(frame)) => seen.body.extend(frame.data_ref().into_iter().flatten()),
            }
        };
    }
    let asks_to_close = |value: &HeaderValue| {
        let value = value.to_str().unwrap_or_default().to_ascii_lowercase();
        value.split(',').any(|token| token.trim() == "close")
    };
    let mut view = view.lock();
    // hyper may close the connection after an upgrade request or a request of another version.
    view.has_closed |= is_refused
        || !seen.is_whole
        || parts.version != http::Version::HTTP_11
        || parts.headers.get_all(CONNECTION).iter().any(asks_to_close);
    if let Some(last) = view.requests.last_mut() {
        *last = seen;
    }
    response
}

/// A client that sends these pieces and disconnects. Our reader reads along, as on a real connection.
struct Script {
    pieces: Vec<Vec<u8>>,
    framing: Arc<Mutex<FramingReader>>,
}

impl AsyncRead for Script {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(mut piece) = self.pieces.pop() {
            let rest = piece.split_off(piece.len().min(buf.remaining()));
            if !rest.is_empty() {
                self.pieces.push(rest);
            }
            self.framing.lock().read(&piece);
            buf.put_slice(&piece);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Script {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUNDS: usize = 3_000;

    const SEEDS: [&str; 9] = [
        "GET /a HTTP/1.1\r\nHost: g\r\n\r\nGET /b HTTP/1.1\r\nHost: g\r\n\r\n",
        "POST /a HTTP/1.1\r\nHost: g\r\nContent-Length: 5\r\n\r\nhelloGET /b HTTP/1.1\r\nHost: g\r\n\r\n",
        "POST /a HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nGET /b HTTP/1.1\r\nHost: g\r\n\r\n",
        "POST /a HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\nGET /b HTTP/1.1\r\nHost: g\r\n\r\n",
        "POST /a HTTP/1.1\nHost: g\nTransfer-Encoding: chunked\n\n1;a=\"b\"\r\nx\r\n00 \r\nT: v\r\n\r\nGET /b HTTP/1.1\r\nHost: g\r\n\r\n",
        "POST /a HTTP/1.0\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\nabcGET /b HTTP/1.1\r\nHost: g\r\n\r\n",
        "\r\n\r\nPOST /a HTTP/1.1\r\nhost:g\r\ncontent-length:0003\r\nExpect: 100-continue\r\n\r\nabcGET /b HTTP/1.1\r\nHost: g\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "POST /a HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nT: v\nU: w\r\n\r\nGET /b HTTP/1.1\r\nHost: g\r\n\r\n",
    ];

    const TOKENS: [&str; 27] = [
        "\r\n",
        "\n",
        "\r",
        "\r\n\r\n",
        "\n\n",
        ":",
        " ",
        "\t",
        ";",
        ",",
        "0",
        "1",
        "ffffffffffffffff",
        "Content-Length: 5\r\n",
        "Content-Length: 0\r\n",
        "content-length:\t7",
        "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Host: h\r\n",
        "chunked",
        "HTTP/1.1",
        "HTTP/1.0",
        "0\r\n\r\n",
        "GET /c HTTP/1.1\r\nHost: g\r\n\r\n",
        "                                                                      ",
        "Connection: close\r\n",
    ];

    struct SeededRandom(u64);

    impl SeededRandom {
        fn below(&mut self, bound: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            usize::try_from(self.0 >> 33).unwrap() % bound.max(1)
        }

        fn mutated(&mut self) -> Vec<u8> {
            let mut bytes = SEEDS[self.below(SEEDS.len())].as_bytes().to_vec();
            for _ in 0..self.below(4) {
                let at = self.below(bytes.len() + 1);
                let end = (at + self.below(12)).min(bytes.len());
                let token = TOKENS[self.below(TOKENS.len())].bytes();
                match self.below(5) {
                    0 => drop(bytes.drain(at..end)),
                    1 => drop(bytes.splice(at..at, token)),
                    2 => drop(bytes.splice(at..end, token)),
                    3 => {
                        let other = SEEDS[self.below(SEEDS.len())].as_bytes();
                        drop(bytes.splice(at..at, other.iter().copied()));
                    }
                    _ => {
                        let byte = u8::try_from(self.below(256)).unwrap();
                        bytes.insert(at, byte);
                    }
                }
            }
            bytes
        }
    }

    #[test]
    fn both_see_the_same_requests_in_any_bytes() {
        for seed in SEEDS {
            any_requests(seed.as_bytes());
        }
        let mut random = SeededRandom(0x9e37_79b9_7f4a_7c15);
        // The variable can set a larger number of rounds.
        let rounds = std::env::var("TOLLGATE_FRAMING_ROUNDS");
        let rounds = rounds.map_or(ROUNDS, |rounds| rounds.parse().unwrap());
        for _ in 0..rounds {
            any_requests(&random.mutated());
        }
    }
}
