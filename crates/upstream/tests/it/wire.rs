//! Tests of requests and responses on the wire, without failures.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use upstream::{
    Account, CallErrorKind, Channel, ChannelSpec, Secret, Sent, SpoolFile, SpooledPart, Timeouts,
    UpstreamRequest,
};

use crate::upstream_script::{HELLO, Peer, SECRET, both, call, call_with, upstream};

#[tokio::test]
async fn a_call_goes_out_whole_and_its_answer_comes_back() {
    let (listener, channel) = upstream().await;
    let server = async {
        let mut peer = Peer::accept(&listener).await;
        let request = peer.request().await;
        assert!(request.starts_with("POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:"));
        assert!(request.contains(&format!("\r\nauthorization: Bearer {SECRET}\r\n")));
        assert!(request.ends_with("\r\ncontent-length: 7\r\n\r\n{\"a\":1}"));
        peer.say("HTTP/1.1 429 Slow Down\r\ncontent-type: text/x\r\nretry-after: 2\r\n")
            .await;
        peer.say("set-cookie: a=b\r\ncontent-length: 2\r\n\r\n{}")
            .await;
    };
    let incoming = both(server, channel.send(&call("{\"a\":1}")))
        .await
        .unwrap();
    assert_eq!(incoming.status, 429);
    assert_eq!(incoming.content_type.unwrap(), "text/x");
    assert_eq!(incoming.retry_after.unwrap().as_secs(), 2);
    assert_eq!(incoming.body.collect(100).await.unwrap(), "{}");
}

#[tokio::test]
async fn a_date_to_come_back_at_is_as_good_as_seconds() {
    let (listener, channel) = upstream().await;
    let server = async {
        let mut peer = Peer::accept(&listener).await;
        peer.request().await;
        peer.say("HTTP/1.1 429 Slow Down\r\nretry-after: Sun, 06 Nov 1994 08:50:07 GMT\r\n")
            .await;
        peer.say("date: Sun, 06 Nov 1994 08:49:37 GMT\r\ncontent-length: 0\r\n\r\n")
            .await;
    };
    let incoming = both(server, channel.send(&call("{}"))).await.unwrap();
    assert_eq!(incoming.retry_after.unwrap().as_secs(), 30);
}

#[tokio::test]
async fn everything_one_read_brought_comes_as_one_piece() {
    let (listener, channel) = upstream().await;
    let server = async {
        let mut peer = Peer::accept(&listener).await;
        peer.request().await;
        peer.say(concat!(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
            "9\r\ndata: 1\n\n\r\n9\r\ndata: 2\n\n\r\n9\r\ndata: 3\n\n\r\n0\r\n\r\n"
        ))
        .await;
    };
    let mut body = both(server, channel.send(&call("{}"))).await.unwrap().body;
    assert_eq!(
        body.next().await.unwrap().unwrap(),
        "data: 1\n\ndata: 2\n\ndata: 3\n\n"
    );
    assert!(body.has_ended());
    assert!(body.next().await.is_none());
}

#[tokio::test]
async fn a_body_without_a_length_ends_when_the_upstream_closes() {
    let (listener, channel) = upstream().await;
    let server = async {
        let mut peer = Peer::accept(&listener).await;
        peer.request().await;
        peer.say("HTTP/1.0 200 OK\r\n\r\nall of it").await;
    };
    let body = both(server, channel.send(&call("{}"))).await.unwrap().body;
    assert_eq!(body.collect(100).await.unwrap(), "all of it");
    assert_eq!(channel.idle_connections(), 0);
}

#[tokio::test]
async fn an_answer_that_comes_before_the_request_was_read_is_seen() {
    let (listener, channel) = upstream().await;
    // More than the socket buffers hold, so that the write has to wait.
    let large = Bytes::from(vec![b'x'; 32 << 20]);
    let server = async {
        let mut peer = Peer::accept(&listener).await;
        peer.say("HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno")
            .await;
        peer
    };
    let call = call_with(large);
    let (peer, incoming) = tokio::join!(server, channel.send(&call));
    let incoming = incoming.unwrap();
    assert_eq!(incoming.status, 413);
    assert_eq!(incoming.body.collect(100).await.unwrap(), "no");
    // Half a request was written to the connection, so it must not be reused.
    assert_eq!(channel.idle_connections(), 0);
    drop(peer);
}

#[tokio::test]
async fn an_early_refusal_of_an_upstream_is_read() {
    let (listener, channel) = upstream().await;
    let connected = tokio::sync::Notify::new();
    let server = async {
        let mut peer = Peer::accept(&listener).await;
        peer.say("HTTP/1.1 503 Busy\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n")
            .await;
        connected.notified().await;
    };
    let client = async {
        let incoming = channel.send(&call("{}")).await.unwrap();
        connected.notify_one();
        incoming.status
    };
    assert_eq!(both(server, client).await, 503);
}

#[test]
fn calls_and_bodies_may_move_between_threads() {
    fn check<T: Send + Sync>() {}
    check::<upstream::Channel>();
    check::<upstream::UpstreamResponse>();
    check::<upstream::CallError>();
}

#[tokio::test]
async fn collect_takes_what_fits_and_refuses_what_does_not() {
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let until_close = "HTTP/1.0 200 OK\r\n\r\nhello";
    for answer in [HELLO, chunked, until_close] {
        for (limit, fits) in [(5, true), (4, false), (0, false)] {
            let (listener, channel) = upstream().await;
            let server = async {
                let mut peer = Peer::accept(&listener).await;
                peer.request().await;
                peer.say(answer).await;
            };
            let body = both(server, channel.send(&call("{}"))).await.unwrap().body;
            match body.collect(limit).await {
                Ok(whole) => assert!(fits && whole == "hello", "{answer} within {limit}"),
                Err(error) => {
                    assert_eq!(
                        (error.kind, fits),
                        (CallErrorKind::TooLarge, false),
                        "{answer}"
                    );
                }
            }
        }
    }
}

/// Uses hyper as the server, with bodies of many sizes in both directions.
#[tokio::test]
async fn bodies_of_all_sizes_pass_through_a_common_server() {
    let (listener, channel) = upstream().await;
    let server = async {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let echo = service_fn(|request: hyper::Request<hyper::body::Incoming>| async {
                let body = request.into_body().collect().await?.to_bytes();
                Ok::<_, hyper::Error>(hyper::Response::new(Full::new(body)))
            });
            tokio::spawn(
                hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), echo),
            );
        }
    };
    let client = async {
        for size in [0, 1, 100, 8_000, 8_192, 70_000, 1_000_000, 5_000_000] {
            let body: Bytes = (0..=u8::MAX).cycle().take(size).collect::<Vec<_>>().into();
            let collected = channel.send(&call_with(body.clone())).await.unwrap();
            assert!(
                collected.body.collect(size).await.unwrap() == body,
                "{size} at once"
            );

            let mut pieces = channel.send(&call_with(body.clone())).await.unwrap().body;
            let mut whole = Vec::new();
            while let Some(piece) = pieces.next().await {
                whole.extend_from_slice(&piece.unwrap());
            }
            assert!(whole == body, "{size} in pieces");
            assert_eq!(channel.idle_connections(), 1, "one connection serves all");
        }
    };
    tokio::select! {
        () = client => {}
        () = server => {}
    }
}

/// A body in a file is not signed. Nothing is sent, and the error does not blame the upstream's answer.
#[tokio::test]
async fn a_body_in_a_file_is_not_signed() {
    let settings = [("region", "us-east-1"), ("access_key_id", "ASIA4711")];
    let settings = settings.map(|(name, value)| (name.to_owned(), Secret::new(value)));
    let spec = ChannelSpec {
        name: "cloud".to_owned(),
        preset: "bedrock".parse().unwrap(),
        base_url: None,
        credential: Some(Secret::new("Signature")),
        account: settings.into_iter().collect::<Account>(),
        protocols: None,
        private_network: false,
        keeps_output_limit: None,
        client_gone_drain: None,
        counts_tokens: None,
        sends_traceparent: false,
    };
    let channel = Channel::new(spec, Timeouts::default()).unwrap();
    let spooled = SpooledPart {
        at: 0,
        spool: SpoolFile::new(tempfile::tempfile().unwrap(), 0),
    };
    let call = UpstreamRequest {
        spooled: Some(spooled),
        ..call("{}")
    };
    let error = channel.send(&call).await.unwrap_err();
    assert_eq!(
        (error.sent, error.kind),
        (Sent::No, CallErrorKind::Unsignable)
    );
    assert_eq!(error.to_string(), "the request is too large to be signed");
}
