//! Tests of response bodies that are binary event streams.

use tokio::io::AsyncWriteExt;
use upstream::CallErrorKind;

use crate::upstream_script::{Peer, both, call, upstream};

/// A message with `{"type":"ping"}`, verified with the vendor's own library.
const PING: &str = "0000007b0000004b0a2e96af0b3a6576656e742d747970650700056368756e6b0d3a636f6e74656e742d7479\
    70650700106170706c69636174696f6e2f6a736f6e0d3a6d6573736167652d747970650700056576656e747b226279\
    746573223a2265794a306558426c496a6f6963476c755a794a39227da01f56c4";
const EVENT: &str = "event: ping\ndata: {\"type\":\"ping\"}\n\n";

fn ping() -> Vec<u8> {
    let digits: Vec<u32> = PING.chars().filter_map(|it| it.to_digit(16)).collect();
    let byte = |pair: &[u32]| u8::try_from(pair[0] * 16 + pair[1]).unwrap();
    digits.chunks_exact(2).map(byte).collect()
}

/// Reads a stream with this body and returns its events and its error.
async fn read(body: &[u8]) -> (String, Option<CallErrorKind>) {
    let (listener, channel) = upstream().await;
    let server = async {
        let mut peer = Peer::accept(&listener).await;
        peer.request().await;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/vnd.amazon.eventstream\r\n";
        peer.say(&format!("{head}content-length: {}\r\n\r\n", body.len()))
            .await;
        // The body is sent in two writes, split within a message.
        let (first, rest) = body.split_at(body.len() / 3);
        for piece in [first, rest] {
            peer.0.write_all(piece).await.unwrap();
            peer.0.flush().await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    let mut incoming = both(server, channel.send(&call("{}"))).await.unwrap();
    assert_eq!(incoming.content_type.unwrap(), "text/event-stream");
    let mut events = Vec::new();
    loop {
        match incoming.body.next().await {
            Some(Ok(piece)) => events.extend_from_slice(&piece),
            Some(Err(error)) => {
                let again = incoming.body.next().await;
                assert!(again.is_some_and(|it| it.is_err()), "it stays broken");
                return (String::from_utf8(events).unwrap(), Some(error.kind));
            }
            None => return (String::from_utf8(events).unwrap(), None),
        }
    }
}

#[tokio::test]
async fn a_binary_stream_is_read_as_server_sent_events() {
    let two = [ping(), ping()].concat();
    assert_eq!(read(&two).await, (EVENT.repeat(2), None));
    assert_eq!(read(b"").await, (String::new(), None));
}

#[tokio::test]
async fn events_before_a_fault_arrive_and_then_the_fault() {
    let broken = Some(CallErrorKind::Broken);
    // The body is complete, but the stream in it was cut off.
    let mut cut = [ping(), ping()].concat();
    cut.pop();
    assert_eq!(read(&cut).await, (EVENT.to_owned(), broken));
    let mut changed = [ping(), ping(), ping()].concat();
    changed[ping().len() + 100] ^= 1;
    assert_eq!(read(&changed).await, (EVENT.to_owned(), broken));
}
