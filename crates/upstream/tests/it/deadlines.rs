//! Tests that every wait has a deadline. The clock is paused and advances only while a test waits.

use std::time::Duration;

use tokio::time::{Instant, pause};
use upstream::{CallError, CallErrorKind, Sent, TimeoutStage};

use crate::upstream_script::{Peer, both, call, channel_to, seconds, upstream_within};

fn timed_out(error: &CallError, stage: TimeoutStage) -> bool {
    error.kind == CallErrorKind::Timeout(stage)
}

#[tokio::test]
async fn a_silent_upstream_is_given_up_at_the_first_byte_deadline() {
    let (listener, channel) = upstream_within(seconds(5, 600, 300, 1800)).await;
    let server = async {
        let mut peer = Peer::accept(&listener).await;
        peer.request().await;
        pause();
        peer.closed().await;
    };
    let start = Instant::now();
    let error = both(server, channel.send(&call("{}"))).await.unwrap_err();
    assert!(timed_out(&error, TimeoutStage::FirstByte), "{error:?}");
    assert_eq!(error.sent, Sent::Maybe);
    assert_eq!(start.elapsed().as_secs(), 600);
}

#[tokio::test]
async fn half_a_head_does_not_meet_the_first_byte_deadline() {
    let (listener, channel) = upstream_within(seconds(5, 600, 300, 1800)).await;
    let server = async {
        let mut peer = Peer::accept(&listener).await;
        peer.request().await;
        peer.say("HTTP/1.1 200 OK\r\ncontent-").await;
        pause();
        peer.closed().await;
    };
    let error = both(server, channel.send(&call("{}"))).await.unwrap_err();
    assert!(timed_out(&error, TimeoutStage::FirstByte), "{error:?}");
}

#[tokio::test]
async fn a_stream_that_falls_silent_is_given_up_at_the_idle_deadline() {
    let (listener, channel) = upstream_within(seconds(5, 600, 300, 1800)).await;
    let server = async {
        let mut peer = Peer::accept(&listener).await;
        peer.request().await;
        peer.say("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            .await;
        pause();
        // Three pieces arrive within the timeout, and then no more.
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_secs(299)).await;
            peer.say("1\r\nx\r\n").await;
        }
        peer.closed().await;
    };
    let start = Instant::now();
    let client = async {
        let mut body = channel.send(&call("{}")).await?.body;
        for _ in 0..3 {
            assert_eq!(body.next().await.unwrap()?, "x");
        }
        body.next().await.unwrap().map(drop)
    };
    let error = both(server, client).await.unwrap_err();
    assert!(timed_out(&error, TimeoutStage::Idle), "{error:?}");
    assert_eq!(start.elapsed().as_secs(), 3 * 299 + 300);
    assert_eq!(channel.idle_connections(), 0);
}

#[tokio::test]
async fn a_stream_that_never_ends_is_given_up_at_the_total_deadline() {
    let (listener, channel) = upstream_within(seconds(5, 600, 300, 1800)).await;
    let server = async {
        let mut peer = Peer::accept(&listener).await;
        peer.request().await;
        peer.say("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            .await;
        pause();
        for _ in 0..17 {
            tokio::time::sleep(Duration::from_secs(100)).await;
            peer.say("1\r\nx\r\n").await;
        }
        peer.closed().await;
    };
    let start = Instant::now();
    let client = async {
        let mut body = channel.send(&call("{}")).await.unwrap().body;
        let mut pieces = 0;
        loop {
            match body.next().await.unwrap() {
                Ok(_) => pieces += 1,
                Err(error) => break (pieces, error),
            }
        }
    };
    let (pieces, error) = both(server, client).await;
    assert!(timed_out(&error, TimeoutStage::Total), "{error:?}");
    assert_eq!((pieces, start.elapsed().as_secs()), (17, 1800));
}

#[tokio::test]
async fn the_total_deadline_counts_before_the_first_byte_too() {
    let (listener, channel) = upstream_within(seconds(5, 600, 300, 60)).await;
    let server = async {
        let mut peer = Peer::accept(&listener).await;
        peer.request().await;
        pause();
        peer.closed().await;
    };
    let error = both(server, channel.send(&call("{}"))).await.unwrap_err();
    assert!(timed_out(&error, TimeoutStage::Total), "{error:?}");
}

#[tokio::test]
async fn an_upstream_is_not_blamed_while_nobody_asks_for_more() {
    let (listener, channel) = upstream_within(seconds(5, 600, 300, 1800)).await;
    let server = async {
        let mut peer = Peer::accept(&listener).await;
        peer.request().await;
        peer.say("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\na")
            .await;
        pause();
        tokio::time::sleep(Duration::from_secs(1000)).await;
        peer.say("b").await;
    };
    let client = async {
        let mut body = channel.send(&call("{}")).await.unwrap().body;
        assert_eq!(body.next().await.unwrap().unwrap(), "a");
        // Our own reader is slow: it polls again after the idle deadline would have passed.
        tokio::time::sleep(Duration::from_secs(900)).await;
        assert_eq!(body.next().await.unwrap().unwrap(), "b");
        assert!(body.next().await.is_none());
    };
    both(server, client).await;
}

#[tokio::test]
async fn a_reused_connection_keeps_new_deadlines() {
    let (listener, channel) = upstream_within(seconds(5, 600, 300, 1800)).await;
    let server = async {
        let mut peer = Peer::accept(&listener).await;
        peer.request().await;
        peer.say("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            .await;
        peer.request().await;
        pause();
        peer.closed().await;
    };
    let client = async {
        channel.send(&call("{}")).await.unwrap();
        assert_eq!(channel.idle_connections(), 1);
        let start = Instant::now();
        let error = channel.send(&call("{}")).await.unwrap_err();
        assert!(timed_out(&error, TimeoutStage::FirstByte), "{error:?}");
        assert_eq!(start.elapsed().as_secs(), 600);
    };
    both(server, client).await;
}

#[tokio::test]
async fn an_upstream_that_does_not_read_is_given_up() {
    let (listener, channel) = upstream_within(seconds(5, 600, 300, 1800)).await;
    let large = bytes::Bytes::from(vec![b'x'; 32 << 20]);
    let server = async {
        let peer = Peer::accept(&listener).await;
        peer.0.readable().await.unwrap();
        pause();
        peer
    };
    let call = crate::upstream_script::call_with(large);
    let (peer, error) = tokio::join!(server, channel.send(&call));
    let error = error.unwrap_err();
    assert!(timed_out(&error, TimeoutStage::FirstByte), "{error:?}");
    assert_eq!(error.sent, Sent::Maybe);
    drop(peer);
}

/// TLS to a server that accepts and then sends nothing: the handshake hangs.
#[tokio::test]
async fn a_connection_that_cannot_be_opened_times_out() {
    let (listener, _) = upstream_within(seconds(5, 600, 300, 1800)).await;
    let base_url = format!("https://{}/v1", listener.local_addr().unwrap());
    let channel = channel_to(&base_url, seconds(5, 600, 300, 1800));
    let server = async {
        let peer = Peer::accept(&listener).await;
        peer.0.readable().await.unwrap();
        pause();
        peer
    };
    let start = Instant::now();
    let call = call("{}");
    let (peer, error) = tokio::join!(server, channel.send(&call));
    let error = error.unwrap_err();
    assert!(timed_out(&error, TimeoutStage::Connect), "{error:?}");
    assert_eq!(error.sent, Sent::No);
    assert_eq!(start.elapsed().as_secs(), 5);
    drop(peer);
}
