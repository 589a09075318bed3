//! Tests of streams whose caller leaves at an unusual moment, and of streams that break while the ledger is slow.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use protocol::native::{AnswerSummary, Identity, LongCache, Rewriter};
use protocol::{Dialect, Translator};
use tokio::io::{AsyncWriteExt as _, DuplexStream};
use tokio::sync::oneshot;
use tokio::time::timeout;
use upstream::{Channel, ChannelSpec, Endpoint, Timeouts, UpstreamRequest};

use super::*;
use crate::billing::estimate::Estimate;
use crate::billing::metering::Metering;
use crate::call::admission::tests::{Scene, USED};
use crate::memory_budget::MemoryBudget;
use crate::settings::Commit;

/// The output tokens that the hold covers, that the call may produce, and that it has produced.
const HELD: u64 = 20;
const MOST: u64 = 1_000;
const CAME: u64 = 500;

fn estimate() -> Estimate {
    Estimate {
        reserved: ledger::Meter {
            input: USED,
            output: HELD,
            ..ledger::Meter::default()
        },
        tokens_possible: USED + MOST,
        output_bound: MOST,
        metering: Metering::Tokens {
            input_tokens: USED,
            long_cache: LongCache::No,
        },
        ..Estimate::default()
    }
}

/// A relay whose upstream has ended.
fn relay(admission: Box<Admission>, out: ByteQueue) -> StreamRelay {
    StreamRelay {
        source: None,
        fresh: !out.is_empty(),
        out,
        share: None,
        admission: Some(admission),
        policy: StreamPolicy {
            keep_alive: b"",
            aborts_on_failure: false,
        },
        request_id: "req_1".into(),
        end: StreamEnd::Clean,
        growing: None,
        closing: None,
        grow_after: None,
        keep_alive: KeepAliveTimer::default(),
        shutdown: ShutdownWatch::default(),
    }
}

fn complete() -> AnswerSummary {
    AnswerSummary {
        content: true,
        ended: true,
        output_tokens_counted: CAME,
        ..AnswerSummary::default()
    }
}

/// The answer is complete in its first read, so the hold has not grown. The upstream reports no usage.
#[tokio::test]
async fn a_caller_who_never_looked_at_a_whole_stream_pays_for_all_of_it() {
    let scene = Scene::new(Commit::Behind).await;
    let admission = scene.admitted_for(estimate()).await;
    let mut relay = relay(admission, ByteQueue::new());
    relay.settle(&complete());
    assert!(!relay.is_settled(), "the hold grows first");
    drop(relay);
    let (charged, (status, ..)) = scene.charge_and_journal().await;
    assert_eq!((charged, status), (507, 499));
}

/// The upstream closes the connection right after its output, so nothing has extended the hold.
#[tokio::test]
async fn a_drained_stream_is_charged_for_all_that_came() {
    let scene = Scene::new(Commit::Behind).await;
    let admission = scene.admitted_for(estimate()).await;
    let gone = ClientOutcome::client_gone();
    settle_grown(admission, None, &complete(), &gone).await;
    let (charged, (status, ..)) = scene.charge_and_journal().await;
    assert_eq!((charged, status), (507, 499));
}

#[tokio::test]
async fn what_waits_for_the_caller_is_charged_to_the_node_until_it_is_taken() {
    let scene = Scene::new(Commit::Behind).await;
    let admission = scene.admitted_for(estimate()).await;
    let budget = MemoryBudget::new(100);
    let mut relay = relay(admission, ByteQueue::from(b"the last bytes".to_vec()));
    relay.share = budget.take(100);
    let mut cx = Context::from_waker(std::task::Waker::noop());
    let piece = relay.poll_piece(&mut cx);
    assert!(matches!(piece, Poll::Ready(Some(Ok(_)))));
    assert!(budget.has_room(1).is_err());
    assert!(matches!(relay.poll_piece(&mut cx), Poll::Ready(None)));
    assert!(budget.has_room(100).is_ok());
}

/// The body of an open response, and the upstream's end of its connection.
async fn open_body() -> (upstream::Body, Channel, DuplexStream) {
    let spec = ChannelSpec {
        name: "up".to_owned(),
        preset: "sim".parse().unwrap(),
        base_url: Some("http://up/v1".to_owned()),
        credential: None,
        account: upstream::Account::default(),
        protocols: None,
        private_network: false,
        keeps_output_limit: None,
        client_gone_drain: None,
        counts_tokens: None,
        sends_traceparent: false,
    };
    let (channel, mut listener) = Channel::in_memory(spec, Timeouts::default()).unwrap();
    let (dialect, stream) = (Dialect::Chat, true);
    let endpoint = Endpoint::Text { dialect, stream };
    let request = UpstreamRequest::json(endpoint, "up", vec![Bytes::from_static(b"{}")]);
    let accept = async {
        let mut connection = listener.accept().await.unwrap();
        let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        connection.write_all(head).await.unwrap();
        connection
    };
    let (sent, connection) = tokio::join!(channel.send(&request), accept);
    (sent.unwrap().body, channel, connection)
}

/// A stream with more output than its hold covers. The ledger answers when the test sends on the returned channel.
async fn unpaid(scene: &Scene) -> (StreamRelay, DuplexStream, oneshot::Sender<()>) {
    let identity = Identity {
        id: "chatcmpl_1".into(),
        model: "a/model".into(),
        created: 0,
    };
    let mut translator = Translator::from(Rewriter::new(Dialect::Chat, identity, false));
    let words = "word ".repeat(100);
    let event = format!(
        "data: {{\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"model\":\"up\",\
         \"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{words}\"}}}}]}}\n\n"
    );
    let mut out = ByteQueue::new();
    translator.push(event.into(), &mut out).unwrap();
    let mut admission = scene.admitted_for(estimate()).await;
    assert!(admission.is_uncovered(translator.summary()));
    let step = admission.next_step(translator.summary()).unwrap();
    let store = admission.engine().store.clone();
    let (answer, waits) = oneshot::channel();
    let (body, channel, connection) = open_body().await;
    let mut relay = relay(admission, out);
    relay.source = Some(StreamSource::new(
        body,
        channel,
        translator,
        MemoryBudget::new(1 << 20),
    ));
    relay.growing = Some(Box::pin(async move {
        let _ = waits.await;
        store.extend(step).await.map(drop)
    }));
    (relay, connection, answer)
}

/// Takes all bytes that are ready. Also returns whether the stream has ended.
fn take_all(relay: &mut StreamRelay) -> (String, bool) {
    let mut cx = Context::from_waker(std::task::Waker::noop());
    let mut taken = Vec::new();
    loop {
        match relay.poll_piece(&mut cx) {
            Poll::Ready(Some(piece)) => taken.extend_from_slice(&piece.unwrap()),
            Poll::Ready(None) => return (String::from_utf8(taken).unwrap(), true),
            Poll::Pending => return (String::from_utf8(taken).unwrap(), false),
        }
    }
}

/// Asserts that the ledger and the journal charge a broken stream for its output, within the extended hold.
async fn assert_told(scene: &Scene, status: u16) {
    let (charged, (journaled_status, end, journaled)) = scene.charge_and_journal().await;
    assert_eq!((journaled_status, end.as_str()), (status, "settled"));
    assert!(charged > i64::try_from(USED + 50).unwrap(), "{charged}");
    assert_eq!(charged, journaled);
}

/// The body ends only after the settlement, so that a client that waits for the end can see its charge (W13).
#[tokio::test]
async fn the_error_of_a_broken_stream_does_not_wait_for_the_ledger() {
    let scene = Scene::new(Commit::Behind).await;
    let (mut relay, connection, answer) = unpaid(&scene).await;
    relay.break_off(&Failure::upstream_error());
    drop(connection);
    let (taken, has_ended) = take_all(&mut relay);
    assert!(taken.contains("word word"), "{taken}");
    assert!(taken.contains(r#"data: {"error""#), "{taken}");
    assert!(!has_ended && !relay.is_settled());
    answer.send(()).unwrap();
    let end = poll_fn(|cx| relay.poll_piece(cx)).await;
    assert!(end.is_none() && relay.is_settled());
    assert_told(&scene, 502).await;
}

#[tokio::test]
async fn a_caller_who_leaves_behind_the_error_pays_and_is_journaled_with_it() {
    for (takes_all, status) in [(true, 502), (false, 499)] {
        let scene = Scene::new(Commit::Behind).await;
        let (mut relay, _connection, answer) = unpaid(&scene).await;
        relay.break_off(&Failure::upstream_error());
        if takes_all {
            take_all(&mut relay);
        }
        drop(relay);
        answer.send(()).unwrap();
        assert_told(&scene, status).await;
    }
}

#[tokio::test]
async fn a_stream_that_waits_for_the_ledger_is_told_when_the_node_stops() {
    let scene = Scene::new(Commit::Behind).await;
    let (mut relay, _connection, answer) = unpaid(&scene).await;
    let engine = Arc::clone(relay.admission.as_ref().unwrap().engine());
    let (content, has_ended) = take_all(&mut relay);
    assert!(content.contains("word word") && !has_ended);
    let mut has_waited = false;
    let piece = poll_fn(|cx| {
        let piece = relay.poll_piece(cx);
        if piece.is_pending() && !std::mem::replace(&mut has_waited, true) {
            let engine = Arc::clone(&engine);
            tokio::spawn(async move { engine.shutdown.begin() });
        }
        piece
    });
    let piece = timeout(Duration::from_secs(20), piece).await.unwrap();
    let piece = String::from_utf8(piece.unwrap().unwrap().to_vec()).unwrap();
    assert!(piece.contains(r#"data: {"error""#), "{piece}");
    answer.send(()).unwrap();
    assert!(poll_fn(|cx| relay.poll_piece(cx)).await.is_none());
    assert_told(&scene, 503).await;
}
