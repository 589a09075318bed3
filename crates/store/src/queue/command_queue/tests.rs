use std::sync::Arc;

use ledger::{Micro, Reservation, UnixMs};
use tokio::sync::oneshot;

use super::*;
use crate::queue::command::AdmissionReply;
use crate::records::call::{Admit, Close, End, IfLost};
use crate::records::ids::{HoldId, KeyId, WalletId};

const GATHER: Duration = Duration::from_millis(2);
type Answer = oneshot::Receiver<Result<AdmissionReply, AdmitError>>;

fn queue(waiting_max: usize, call_wait_max: Duration) -> CommandQueue {
    let change_wait_max = Duration::from_secs(5);
    CommandQueue::new(Bounds {
        gather: GATHER,
        waiting_max,
        call_wait_max,
        change_wait_max,
    })
}

fn admission() -> (Command, Answer) {
    let (reply, answer) = oneshot::channel();
    let ask = Reservation {
        hold: Micro::ZERO,
        exposure: Micro::ZERO,
        tokens: 0,
        counts_in_flight: true,
    };
    let (wallet, key) = (WalletId::random(), KeyId::random());
    let admit = Admit {
        wallet,
        key,
        ask,
        request_id: "req_1".into(),
        now: UnixMs::new(0),
    };
    (Command::Admit(admit, reply), answer)
}

fn close() -> Command {
    Command::Close(Close {
        if_lost: IfLost::Charge,
        hold: HoldId::new(1),
        now: UnixMs::new(0),
        end: End::Released,
    })
}

fn at_once(now: Instant) -> BatchTiming {
    BatchTiming {
        not_before: now,
        enough: usize::MAX,
        linger_until: now,
        due: None,
        opens_ahead: false,
    }
}

fn plan(queue: &CommandQueue, timing: &BatchTiming, now: Instant) -> Plan {
    queue.state.lock().plan(timing, GATHER, now)
}

#[test]
fn closes_gather_and_an_admission_does_not_wait_for_them() {
    let queue = queue(10, Duration::MAX);
    let now = Instant::now();
    let timing = at_once(now);
    assert_eq!(plan(&queue, &timing, now), Plan::Sleep(Sleep::Idle, None));
    queue.push_close(close());
    let gathered = queue.state.lock().since + GATHER;
    assert_eq!(
        plan(&queue, &timing, now),
        Plan::Sleep(Sleep::Gathering, Some(gathered))
    );
    assert_eq!(plan(&queue, &timing, gathered), Plan::Wake(Wake::Work));
    let (admission, _answer) = admission();
    queue.push(admission).unwrap();
    assert_eq!(plan(&queue, &timing, now), Plan::Wake(Wake::Work));
}

#[test]
fn a_batch_is_opened_ahead_of_its_calls_after_its_pause_and_never_at_the_end() {
    let queue = queue(10, Duration::MAX);
    let now = Instant::now();
    let timing = BatchTiming {
        not_before: now + GATHER,
        opens_ahead: true,
        ..at_once(now)
    };
    let paced = Plan::Sleep(
        Sleep::Paced {
            enough: timing.enough,
        },
        Some(now + GATHER),
    );
    assert_eq!(plan(&queue, &timing, now), paced);
    assert_eq!(plan(&queue, &timing, now + GATHER), Plan::Wake(Wake::Work));
    queue.close();
    assert_eq!(plan(&queue, &timing, now + GATHER), Plan::Wake(Wake::End));
}

#[test]
fn under_load_a_batch_waits_for_its_time_or_for_enough_calls() {
    let queue = queue(10, Duration::MAX);
    let now = Instant::now();
    let timing = BatchTiming {
        not_before: now + GATHER,
        enough: 2,
        ..at_once(now)
    };
    let (first, _one) = admission();
    queue.push(first).unwrap();
    let paced = Plan::Sleep(Sleep::Paced { enough: 2 }, Some(now + GATHER));
    assert_eq!(plan(&queue, &timing, now), paced);
    assert_eq!(plan(&queue, &timing, now + GATHER), Plan::Wake(Wake::Work));
    let (second, _two) = admission();
    queue.push(second).unwrap();
    assert_eq!(plan(&queue, &timing, now), Plan::Wake(Wake::Work));
}

#[test]
fn a_closed_queue_ends_when_nothing_is_due_soon() {
    let queue = queue(10, Duration::MAX);
    let now = Instant::now();
    queue.push_close(close());
    queue.close();
    assert_eq!(plan(&queue, &at_once(now), now), Plan::Wake(Wake::Work));
    queue.drain(&mut Vec::new());
    assert_eq!(plan(&queue, &at_once(now), now), Plan::Wake(Wake::End));
    let soon = now + Duration::from_secs(1);
    let retry = BatchTiming {
        due: Some(soon),
        ..at_once(now)
    };
    assert_eq!(
        plan(&queue, &retry, now),
        Plan::Sleep(Sleep::Awake, Some(soon))
    );
    let much_later = BatchTiming {
        due: Some(now + Duration::from_secs(60)),
        ..at_once(now)
    };
    assert_eq!(plan(&queue, &much_later, now), Plan::Wake(Wake::End));
    assert_eq!(queue.push(admission().0), Err(PushError::Closed));
}

/// Each of these events ends the wait. A close that is queued during the wait does not end it.
#[test]
fn a_wait_in_a_batch_ends_with_who_waits_for_it() {
    type End = fn(&CommandQueue);
    let decision: End = |queue| queue.push(admission().0).unwrap();
    for (what, end) in [
        ("a decision", decision),
        ("the batch", CommandQueue::request_batch),
        ("the end", CommandQueue::close),
    ] {
        let queue = Arc::new(queue(10, Duration::MAX));
        let waiting = std::thread::spawn({
            let queue = Arc::clone(&queue);
            let much_later = Instant::now() + Duration::from_secs(3600);
            move || queue.wait_in_batch(much_later)
        });
        while queue.state.lock().sleep != Sleep::Gathering {
            std::thread::yield_now();
        }
        queue.push_close(close());
        assert_eq!(queue.state.lock().sleep, Sleep::Gathering, "{what}");
        end(&queue);
        waiting.join().unwrap();
        assert!(queue.depth() > 0, "{what}");
    }
}

#[test]
fn a_full_queue_refuses_admissions_alone() {
    let queue = queue(1, Duration::MAX);
    let (first, _one) = admission();
    queue.push(first).unwrap();
    assert_eq!(queue.push(admission().0), Err(PushError::Full));
    let (reply, _answer) = oneshot::channel();
    queue.push(Command::Flush(reply)).unwrap();
    queue.push_close(close());
    assert_eq!(queue.depth(), 3);
}

#[test]
fn who_waited_too_long_is_told_so_and_closes_stay() {
    let queue = queue(10, Duration::ZERO);
    let (admission, mut answer) = admission();
    queue.push_close(close());
    queue.push(admission).unwrap();
    while queue.depth() > 1 {
        queue.expire();
    }
    assert_eq!(answer.try_recv().unwrap().unwrap_err(), AdmitError::Busy);
    let mut left = Vec::new();
    queue.drain(&mut left);
    assert!(matches!(
        left.as_slice(),
        [Queued {
            command: Command::Close(_),
            ..
        }]
    ));
}
