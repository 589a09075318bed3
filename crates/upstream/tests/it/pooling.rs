//! Tests of the reuse of connections between calls.

use bytes::Bytes;
use upstream::{CallErrorKind, Sent};

use crate::upstream_script::{HELLO, Peer, both, call, call_with, upstream, yield_to_others};

#[tokio::test]
async fn a_connection_serves_one_call_after_the_other() {
    let (listener, channel) = upstream().await;
    let server = async {
        let mut peer = Peer::accept(&listener).await;
        for _ in 0..3 {
            peer.request().await;
            peer.say(HELLO).await;
        }
        peer
    };
    let client = async {
        for _ in 0..3 {
            let mut body = channel.send(&call("{}")).await.unwrap().body;
            assert_eq!(channel.idle_connections(), 0);
            assert_eq!(channel.open_connections(), 1);
            assert_eq!(body.next().await.unwrap().unwrap(), "hello");
            // The last byte has been taken, so the connection is already in the pool.
            assert_eq!(channel.idle_connections(), 1);
            assert_eq!(channel.open_connections(), 1);
        }
    };
    both(async { drop(server.await) }, client).await;
}

#[tokio::test]
async fn a_connection_that_closed_while_resting_is_left_for_a_new_one() {
    let (listener, channel) = upstream().await;
    let server = async {
        for _ in 0..2 {
            let mut peer = Peer::accept(&listener).await;
            peer.request().await;
            peer.say(HELLO).await;
            // The connection is closed here, because `peer` is dropped.
        }
    };
    let client = async {
        for _ in 0..2 {
            let body = channel.send(&call("{}")).await.unwrap().body;
            assert_eq!(body.collect(10).await.unwrap(), "hello");
            assert_eq!(channel.idle_connections(), 1);
            yield_to_others().await;
        }
    };
    both(server, client).await;
}

#[tokio::test]
async fn a_connection_that_spoke_while_resting_is_not_used() {
    let (listener, channel) = upstream().await;
    let server = async {
        let mut first = Peer::accept(&listener).await;
        first.request().await;
        first.say(HELLO).await;
        let (mut second, ()) = tokio::join!(Peer::accept(&listener), async {
            first.say("HTTP/1.1 408 Request Timeout\r\n\r\n").await;
            first.closed().await;
        });
        second.request().await;
        second.say(HELLO).await;
    };
    let client = async {
        for _ in 0..2 {
            let body = channel.send(&call("{}")).await.unwrap().body;
            assert_eq!(body.collect(10).await.unwrap(), "hello");
            yield_to_others().await;
        }
    };
    both(server, client).await;
}

#[tokio::test]
async fn bytes_after_an_answer_close_the_connection() {
    let (listener, channel) = upstream().await;
    let server = async {
        let mut peer = Peer::accept(&listener).await;
        peer.request().await;
        peer.say(&format!("{HELLO}HTTP/1.1 200 OK\r\n")).await;
    };
    let body = both(server, channel.send(&call("{}"))).await.unwrap().body;
    assert_eq!(body.collect(10).await.unwrap(), "hello");
    assert_eq!(channel.idle_connections(), 0);
}

#[tokio::test]
async fn an_upstream_that_says_close_is_taken_at_its_word() {
    let (listener, channel) = upstream().await;
    let server = async {
        let mut peer = Peer::accept(&listener).await;
        peer.request().await;
        peer.say("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok")
            .await;
        peer.closed().await;
    };
    let client = async {
        let body = channel.send(&call("{}")).await.unwrap().body;
        assert_eq!(body.collect(10).await.unwrap(), "ok");
        assert_eq!(channel.idle_connections(), 0);
    };
    both(server, client).await;
}

#[tokio::test]
async fn a_body_dropped_halfway_closes_its_connection() {
    let (listener, channel) = upstream().await;
    let server = async {
        let mut peer = Peer::accept(&listener).await;
        peer.request().await;
        peer.say("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n")
            .await;
        peer.closed().await;
    };
    let client = async {
        let mut body = channel.send(&call("{}")).await.unwrap().body;
        assert_eq!(body.next().await.unwrap().unwrap(), "hello");
        drop(body);
        assert_eq!(channel.idle_connections(), 0);
    };
    both(server, client).await;
}

#[tokio::test]
async fn a_body_dropped_when_its_end_has_come_keeps_its_connection() {
    let (listener, channel) = upstream().await;
    let (done, wait) = tokio::sync::oneshot::channel();
    let server = async {
        let mut peer = Peer::accept(&listener).await;
        peer.request().await;
        peer.say("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n6\r\n[DONE]\r\n")
            .await;
        wait.await.unwrap();
        peer.say("0\r\n\r\n").await;
        peer.request().await;
        peer.say(HELLO).await;
    };
    let client = async {
        let mut body = channel.send(&call("{}")).await.unwrap().body;
        assert_eq!(body.next().await.unwrap().unwrap(), "[DONE]");
        done.send(()).unwrap();
        yield_to_others().await;
        drop(body);
        assert_eq!(channel.idle_connections(), 1);
        channel.send(&call("{}")).await.unwrap();
    };
    both(server, client).await;
}

#[tokio::test]
async fn a_call_dropped_while_it_waits_closes_its_connection() {
    let (listener, channel) = upstream().await;
    let server = async {
        let mut peer = Peer::accept(&listener).await;
        peer.request().await;
        peer
    };
    let call = call("{}");
    let mut peer = tokio::select! {
        peer = server => peer,
        _ = channel.send(&call) => panic!("nobody answered"),
    };
    peer.closed().await;
    assert_eq!(channel.idle_connections(), 0);
}

#[tokio::test]
async fn nothing_listening_means_nothing_sent() {
    let (listener, channel) = upstream().await;
    drop(listener);
    let error = channel.send(&call("{}")).await.unwrap_err();
    assert_eq!((error.sent, error.kind), (Sent::No, CallErrorKind::Connect));
}

#[tokio::test]
async fn an_upstream_that_hangs_up_on_a_request_may_have_seen_it() {
    for reset in [true, false] {
        let (listener, channel) = upstream().await;
        let server = async {
            let mut peer = Peer::accept(&listener).await;
            peer.request().await;
            if reset {
                peer.reset();
            }
        };
        let error = both(server, channel.send(&call("{}"))).await.unwrap_err();
        assert_eq!(
            (error.sent, error.kind),
            (Sent::Maybe, CallErrorKind::Broken)
        );
    }
}

#[tokio::test]
async fn an_upstream_that_resets_within_a_large_request_may_have_seen_it() {
    let (listener, channel) = upstream().await;
    let large = Bytes::from(vec![b'x'; 32 << 20]);
    let server = async {
        let peer = Peer::accept(&listener).await;
        peer.0.readable().await.unwrap();
        peer.reset();
    };
    let error = both(server, channel.send(&call_with(large)))
        .await
        .unwrap_err();
    assert_eq!(
        (error.sent, error.kind),
        (Sent::Maybe, CallErrorKind::Broken)
    );
}
