//! Streams whose caller leaves at an odd moment.

use super::*;
use crate::billing::estimate::Estimate;
use crate::billing::metering::Metering;
use crate::call::admission::tests::{Scene, USED};
use crate::memory_budget::MemoryBudget;
use crate::settings::Commit;

/// Output that is held for, that can come at most, and that has come.
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
            long_cache: false,
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
        end: End::Clean,
        growing: None,
        closing: None,
        grow_after: None,
        keep_alive: None,
        shutdown: ShutdownWatch::default(),
    }
}

fn complete() -> Seen {
    Seen {
        content: true,
        ended: true,
        output_tokens_counted: CAME,
        ..Seen::default()
    }
}

/// It was over with its first read, so that its hold has not grown, and it reported no usage.
#[tokio::test]
async fn a_caller_who_never_looked_at_a_whole_stream_pays_for_all_of_it() {
    let scene = Scene::new(Commit::Behind).await;
    let admission = scene.admitted_for(estimate()).await;
    let mut relay = relay(admission, ByteQueue::new());
    relay.settle(&complete());
    assert!(!relay.is_settled(), "the hold grows first");
    drop(relay);
    let (charged, (status, ..)) = scene.told().await;
    assert_eq!((charged, status), (507, 499));
}

/// The upstream closed behind what had come already, so that nothing more made the hold grow.
#[tokio::test]
async fn a_drained_stream_is_charged_for_all_that_came() {
    let scene = Scene::new(Commit::Behind).await;
    let admission = scene.admitted_for(estimate()).await;
    settle_gone(admission, None, &complete()).await;
    let (charged, (status, ..)) = scene.told().await;
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
