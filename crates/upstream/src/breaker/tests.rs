use super::*;

/// What happens at one second of a test.
enum Event {
    Attempt,
    Ends(CallOutcome),
    Nothing,
}
use Event::{Attempt, Ends, Nothing};

/// A state with its time in seconds, as the test tables write it.
#[derive(Debug, PartialEq)]
enum Expected {
    Closed,
    Probe,
    OpenSince(u64),
    OutSince(u64),
}

const SERVED: Event = Ends(CallOutcome::Served);
const FAILED: Event = Ends(CallOutcome::Failed);
const REFUSED: Event = Ends(CallOutcome::CredentialRefused);
const UNKNOWN: Event = Ends(CallOutcome::Unknown);

fn overloaded(retry_after: u64) -> Event {
    Ends(CallOutcome::Overloaded {
        retry_after: Some(Duration::from_secs(retry_after)),
    })
}

fn play(story: Vec<(u64, Event, Expected)>) {
    let start = Instant::now();
    let mut breaker = Breaker::new();
    for (step, (second, event, seen)) in story.into_iter().enumerate() {
        let now = start + Duration::from_secs(second);
        match event {
            Attempt => breaker.attempt(now),
            Ends(outcome) => breaker.report(outcome, now),
            Nothing => {}
        }
        let found = match breaker.state(now) {
            BreakerState::Closed => Expected::Closed,
            BreakerState::Probe => Expected::Probe,
            BreakerState::Open { since } => Expected::OpenSince((since - start).as_secs()),
            BreakerState::CredentialRefused { since } => {
                Expected::OutSince((since - start).as_secs())
            }
        };
        assert_eq!(found, seen, "step {step} at {second} s");
    }
}

#[test]
fn five_failures_in_a_row_open_and_a_good_probe_closes() {
    play(vec![
        (0, FAILED, Expected::Closed),
        (0, FAILED, Expected::Closed),
        (0, FAILED, Expected::Closed),
        (0, FAILED, Expected::Closed),
        (0, FAILED, Expected::OpenSince(0)),
        (4, Nothing, Expected::OpenSince(0)),
        (5, Nothing, Expected::Probe),
        (5, Attempt, Expected::OpenSince(0)),
        (6, SERVED, Expected::Closed),
        (6, FAILED, Expected::Closed),
    ]);
}

#[test]
fn a_good_answer_between_failures_begins_the_row_anew() {
    play(vec![
        (0, FAILED, Expected::Closed),
        (0, FAILED, Expected::Closed),
        (0, FAILED, Expected::Closed),
        (0, FAILED, Expected::Closed),
        (0, SERVED, Expected::Closed),
        (0, FAILED, Expected::Closed),
        (0, FAILED, Expected::Closed),
    ]);
}

#[test]
fn failed_probes_double_the_rest_up_to_a_minute() {
    let mut story: Vec<_> = (0..4).map(|_| (0, FAILED, Expected::Closed)).collect();
    story.push((0, FAILED, Expected::OpenSince(0)));
    let mut opened = 0;
    for cooldown in [5, 10, 20, 40, 60, 60] {
        let due = opened + cooldown;
        story.extend([
            (due - 1, Nothing, Expected::OpenSince(opened)),
            (due, Nothing, Expected::Probe),
            (due, Attempt, Expected::OpenSince(opened)),
            (due, FAILED, Expected::OpenSince(due)),
        ]);
        opened = due;
    }
    play(story);
}

#[test]
fn half_of_the_calls_failing_opens() {
    let start = Instant::now();
    for (every, opens) in [(2, true), (3, false)] {
        let mut breaker = Breaker::new();
        for call in 0..60u32 {
            breaker.report(
                match call % every {
                    0 => CallOutcome::Failed,
                    _ => CallOutcome::Served,
                },
                start,
            );
        }
        let open = breaker.state(start) != BreakerState::Closed;
        assert_eq!(open, opens, "one of {every} failed");
    }
}

#[test]
fn a_ratio_counts_within_its_window_only() {
    let start = Instant::now();
    let mut breaker = Breaker::new();
    // Every second call fails, but no window contains 20 calls.
    for call in 0..200u32 {
        let now = start + Duration::from_secs(u64::from(call) * 2);
        breaker.report(
            match call % 2 {
                0 => CallOutcome::Failed,
                _ => CallOutcome::Served,
            },
            now,
        );
        assert_eq!(breaker.state(now), BreakerState::Closed, "call {call}");
    }
}

#[test]
fn retry_after_cools_down_at_once_and_no_longer_than_a_minute() {
    play(vec![
        (0, overloaded(7), Expected::OpenSince(0)),
        (6, Nothing, Expected::OpenSince(0)),
        (7, Nothing, Expected::Probe),
        (7, Attempt, Expected::OpenSince(0)),
        (8, overloaded(86_400), Expected::OpenSince(8)),
        (67, Nothing, Expected::OpenSince(8)),
        (68, Nothing, Expected::Probe),
        (68, Attempt, Expected::OpenSince(8)),
        (69, SERVED, Expected::Closed),
    ]);
}

#[test]
fn overload_without_a_time_is_a_failure_like_others() {
    let vague = || Ends(CallOutcome::Overloaded { retry_after: None });
    play(vec![
        (0, vague(), Expected::Closed),
        (0, vague(), Expected::Closed),
        (0, vague(), Expected::Closed),
        (0, vague(), Expected::Closed),
        (0, vague(), Expected::OpenSince(0)),
    ]);
}

#[test]
fn limits_of_a_model_do_not_open_its_channel() {
    let limited = CallOutcome::RateLimited {
        retry_after: Some(Duration::from_secs(30)),
    };
    let start = Instant::now();
    // One model alone, and one of two models with equally many calls.
    for others in [CallOutcome::Unknown, CallOutcome::Served] {
        let mut breaker = Breaker::new();
        for call in 0..60u32 {
            breaker.report(if call % 2 == 0 { limited } else { others }, start);
            assert_eq!(breaker.state(start), BreakerState::Closed, "call {call}");
        }
    }
    // Limits neither end a row of failures nor lengthen it.
    play(vec![
        (0, FAILED, Expected::Closed),
        (0, FAILED, Expected::Closed),
        (0, Ends(limited), Expected::Closed),
        (0, Ends(limited), Expected::Closed),
        (0, FAILED, Expected::Closed),
        (0, FAILED, Expected::Closed),
        (0, Ends(limited), Expected::Closed),
        (0, FAILED, Expected::OpenSince(0)),
        // A probe that meets a limit does not show that the channel works.
        (5, Attempt, Expected::OpenSince(0)),
        (6, Ends(limited), Expected::OpenSince(6)),
    ]);
}

#[test]
fn a_refused_credential_is_taken_out_and_tried_again_each_minute() {
    play(vec![
        (0, REFUSED, Expected::OutSince(0)),
        (1, FAILED, Expected::OutSince(0)),
        (1, overloaded(1), Expected::OutSince(0)),
        (59, Nothing, Expected::OutSince(0)),
        (60, Nothing, Expected::Probe),
        (60, Attempt, Expected::OutSince(0)),
        (61, REFUSED, Expected::OutSince(61)),
        (120, Nothing, Expected::OutSince(61)),
        (121, Attempt, Expected::OutSince(61)),
        (122, SERVED, Expected::Closed),
    ]);
}

#[test]
fn old_calls_that_end_after_the_trouble_began_change_nothing() {
    play(vec![
        (0, overloaded(10), Expected::OpenSince(0)),
        (1, SERVED, Expected::OpenSince(0)),
        (2, FAILED, Expected::OpenSince(0)),
        (10, Nothing, Expected::Probe),
    ]);
}

#[test]
fn a_call_that_is_tried_for_want_of_better_counts_as_a_probe() {
    play(vec![
        (0, overloaded(30), Expected::OpenSince(0)),
        (1, Attempt, Expected::OpenSince(0)),
        (2, SERVED, Expected::Closed),
    ]);
}

#[test]
fn a_probe_without_a_result_makes_room_for_the_next() {
    play(vec![
        (0, overloaded(5), Expected::OpenSince(0)),
        (5, Attempt, Expected::OpenSince(0)),
        (6, UNKNOWN, Expected::Probe),
        (6, Attempt, Expected::OpenSince(0)),
        // The outcome of this probe is never reported.
        (35, Nothing, Expected::OpenSince(0)),
        (36, Nothing, Expected::Probe),
    ]);
}

#[test]
fn a_status_says_what_it_says_of_the_channel() {
    let wait = Some(Duration::from_secs(3));
    for (status, retry_after, outcome) in [
        (200, None, CallOutcome::Served),
        (400, None, CallOutcome::Served),
        (404, None, CallOutcome::Served),
        (413, None, CallOutcome::Served),
        (401, None, CallOutcome::CredentialRefused),
        (403, None, CallOutcome::Unknown),
        (402, None, CallOutcome::Failed),
        (408, None, CallOutcome::Failed),
        (429, None, CallOutcome::RateLimited { retry_after: None }),
        (429, wait, CallOutcome::RateLimited { retry_after: wait }),
        (529, None, CallOutcome::Overloaded { retry_after: None }),
        (500, wait, CallOutcome::Failed),
        (503, None, CallOutcome::Failed),
        (503, wait, CallOutcome::Overloaded { retry_after: wait }),
    ] {
        assert_eq!(
            CallOutcome::of_status(status, retry_after),
            outcome,
            "{status}"
        );
    }
}
