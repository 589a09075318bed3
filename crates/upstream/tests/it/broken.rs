//! Tests of responses that are incomplete or not HTTP.

use upstream::{CallErrorKind, Sent};

use crate::upstream_script::{Peer, both, call, upstream};

/// Reads a response as a caller does, and returns the data before an error and whether there was an
/// error.
async fn read_response(answer: &str, reset: bool) -> (String, bool) {
    let (listener, channel) = upstream().await;
    let (taken, wait) = tokio::sync::oneshot::channel::<()>();
    let server = async {
        let mut peer = Peer::accept(&listener).await;
        peer.request().await;
        peer.say(answer).await;
        if reset {
            // A reset discards bytes that were not read yet.
            let _ = wait.await;
            peer.reset();
        }
    };
    let client = async {
        let mut seen = String::new();
        let mut body = match channel.send(&call("{}")).await {
            Ok(incoming) => incoming.body,
            Err(error) => {
                assert_eq!(
                    (error.sent, error.kind),
                    (Sent::Maybe, CallErrorKind::Broken)
                );
                return (seen, true);
            }
        };
        let mut taken = Some(taken);
        loop {
            match body.next().await {
                Some(Ok(piece)) => {
                    seen.push_str(std::str::from_utf8(&piece).unwrap());
                    drop(taken.take());
                }
                Some(Err(error)) => {
                    assert_eq!(
                        (error.sent, error.kind),
                        (Sent::Maybe, CallErrorKind::Broken)
                    );
                    // The body stays broken: a later call must not report that it is complete.
                    assert!(matches!(body.next().await, Some(Err(_))));
                    break (seen, true);
                }
                None => break (seen, false),
            }
        }
    };
    let seen = both(server, client).await;
    if seen.1 {
        assert_eq!(channel.idle_connections(), 0, "a broken connection rests");
    }
    seen
}

#[tokio::test]
async fn an_answer_cut_at_any_byte_is_never_a_clean_end() {
    let chunked =
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n";
    let length = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nonetwo";
    for answer in [chunked, length] {
        for cut in 0..answer.len() {
            let (seen, broken) = read_response(&answer[..cut], false).await;
            assert!(broken, "cut at {cut}: {answer:?}");
            assert!("onetwo".starts_with(&seen), "{seen:?} cut at {cut}");
        }
        assert_eq!(
            read_response(answer, false).await,
            ("onetwo".to_owned(), false)
        );
    }
}

#[tokio::test]
async fn a_reset_within_the_body_is_an_error() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\none",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n",
        // Without a length, only a regular close ends the body.
        "HTTP/1.0 200 OK\r\n\r\none",
    ] {
        assert_eq!(
            read_response(answer, true).await,
            ("one".to_owned(), true),
            "{answer:?}"
        );
    }
}

#[tokio::test]
async fn bytes_that_are_not_http_are_an_error() {
    for answer in [
        "garbage\r\n\r\n",
        "\u{0}\u{1}\u{2}",
        "HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\nxx",
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnot a size\r\n",
    ] {
        assert_eq!(
            read_response(answer, false).await,
            (String::new(), true),
            "{answer:?}"
        );
    }
}
