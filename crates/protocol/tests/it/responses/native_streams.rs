//! Tests of streams on the native path, for any chunking of the upstream's bytes.

use std::fmt::Write as _;

use bytes::Bytes;
use proptest::prelude::*;
use protocol::native::{AnswerSummary, Rewriter, UnusableAnswer};
use protocol::{ByteQueue, Code, Dialect, Failure};

use super::native_answers::identity;

#[derive(Debug, PartialEq)]
struct Relayed {
    text: String,
    summary: AnswerSummary,
    result: Result<(), UnusableAnswer>,
    /// The event that would end the stream if it failed now.
    failed: String,
}

fn relay(stream: &str, sizes: &[usize]) -> Relayed {
    let mut rewriter = Rewriter::new(Dialect::Responses, identity(), true);
    let mut out = ByteQueue::new();
    let mut rest = Bytes::copy_from_slice(stream.as_bytes());
    let mut sizes = sizes.iter().cycle();
    let mut result = Ok(());
    while !rest.is_empty() && result.is_ok() {
        let size = sizes.next().copied().unwrap_or(usize::MAX);
        let chunk = rest.split_to(size.clamp(1, rest.len()));
        result = rewriter.push(chunk, &mut out);
    }
    let result = result.and_then(|()| rewriter.end(&mut out));
    let mut failed = ByteQueue::new();
    rewriter.fail(&Failure::upstream_error(), "req_1", &mut failed);
    Relayed {
        text: String::from_utf8(out.into_bytes().to_vec()).unwrap(),
        summary: rewriter.summary().clone(),
        result,
        failed: String::from_utf8(failed.into_bytes().to_vec()).unwrap(),
    }
}

/// The reference stream: reasoning, text, one function call.
const STREAM: &str = include_str!("../../../fixtures/responses/stream.sse");

fn ours(text: &str) -> String {
    text.replace("resp_theirs", "resp_ours")
        .replace("up-2026", "maker/m")
        .replace(r#""store":true"#, r#""store":false"#)
}

#[test]
fn identity_is_replaced_inside_the_envelope() {
    let relayed = relay(STREAM, &[]);
    assert_eq!(relayed.text, ours(STREAM));
    assert!(!relayed.text.contains("theirs"));
    assert_eq!(relayed.result, Ok(()));
    assert!(relayed.summary.content && relayed.summary.ended);
    let usage = relayed.summary.usage.unwrap();
    assert_eq!((usage.input, usage.output, usage.reasoning), (9, 7, 2));
    // Each text is counted once, although it is sent up to four times.
    assert!(
        (4..=12).contains(&relayed.summary.output_tokens_counted),
        "{}",
        relayed.summary.output_tokens_counted
    );
}

#[test]
fn nothing_follows_the_last_event() {
    let incomplete = STREAM.replace("response.completed", "response.incomplete");
    for stream in [STREAM, &incomplete] {
        let relayed = relay(&format!("{stream}data: [DONE]\n\ndata: {{}}\n\n"), &[]);
        assert_eq!(relayed.text, ours(stream));
        assert_eq!(relayed.result, Ok(()));
    }
}

/// The stream up to the event with this name, without it.
fn until(name: &str) -> &'static str {
    let at = STREAM.find(&format!("event: {name}\n")).unwrap();
    &STREAM[..at]
}

#[test]
fn content_begins_with_the_first_text() {
    for (name, content) in [
        ("response.created", false),
        ("response.output_item.added", false),
        ("response.reasoning_summary_text.delta", false),
        ("response.reasoning_summary_text.done", true),
        ("response.completed", true),
    ] {
        let relayed = relay(until(name), &[]);
        assert_eq!(relayed.summary.content, content, "{name}");
        assert_eq!(relayed.result, Err(UnusableAnswer::Unfinished));
    }
}

#[test]
fn output_without_deltas_is_counted() {
    let item = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","name":"look_up","arguments":"{\"where\":\"Paris\"}"}}"#;
    let whole = r#"{"type":"response.completed","response":{"id":"x","output":[{"type":"message","content":[{"type":"output_text","text":"Hello there"}]}]}}"#;
    let sealed = r#"{"type":"response.output_item.done","item":{"type":"reasoning","summary":[],"encrypted_content":"gAA"}}"#;
    for (event, tokens) in [(item, 4..=14), (whole, 2..=4), (sealed, 0..=0)] {
        let relayed = relay(&format!("data: {event}\n\n"), &[]);
        assert!(relayed.summary.content, "{event}");
        let counted = relayed.summary.output_tokens_counted;
        assert!(tokens.contains(&counted), "{counted}: {event}");
    }
}

#[test]
fn a_failure_of_the_upstream_is_never_relayed() {
    let created = until("response.output_item.added");
    for (event, code) in [
        (
            "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"id\":\"resp_theirs\",\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"up-2026\"}}}\n\n",
            Code::UpstreamError,
        ),
        (
            "data: {\"type\":\"response.failed\",\"response\":{\"id\":\"resp_theirs\",\"error\":null}}\n\n",
            Code::UpstreamError,
        ),
        (
            "event: error\ndata: {\"type\":\"error\",\"code\":\"rate_limit_exceeded\",\"message\":\"org-1\",\"param\":null}\n\n",
            Code::UpstreamOverloaded,
        ),
        (
            "data: {\"type\":\"error\",\"code\":null,\"message\":\"x\"}\n\n",
            Code::UpstreamError,
        ),
        (
            "data: {\"error\":{\"message\":\"x\"}}\n\n",
            Code::UpstreamError,
        ),
    ] {
        let relayed = relay(&format!("{created}{event}"), &[]);
        assert_eq!(relayed.text, ours(created));
        let Err(UnusableAnswer::Failure(failure)) = relayed.result else {
            panic!("{event}");
        };
        assert_eq!(failure.code, code, "{event}");
    }
}

#[test]
fn usage_in_a_failure_is_charged_if_there_was_output() {
    let failed = "data: {\"type\":\"response.failed\",\"response\":{\"id\":\"x\",\"usage\":{\"input_tokens\":3,\"output_tokens\":4}}}\n\n";
    let early = relay(
        &format!("{}{failed}", until("response.output_item.added")),
        &[],
    );
    assert_eq!(early.summary.usage, None);
    let late = relay(&format!("{}{failed}", until("response.completed")), &[]);
    assert_eq!(late.summary.usage.unwrap().output, 4);
}

/// Clients check that no number is missing.
#[test]
fn the_event_that_replaces_a_failure_has_its_number() {
    let created = until("response.output_item.added");
    let last = created.rsplit("\"sequence_number\":").next().unwrap();
    let last: u64 = last.split([',', '}']).next().unwrap().parse().unwrap();
    let next = format!("\"sequence_number\":{},", last + 1);
    for event in [
        r#"{"type":"response.failed","sequence_number":NEXT,"response":{"id":"resp_theirs","status":"failed","error":{"message":"x"}}}"#,
        r#"{"type":"error","sequence_number":NEXT,"message":"x"}"#,
        r#"{"type":"error","message":"x","sequence_number":99}"#,
        r#"{"sequence_number":NEXT,"type":"response.output_item.added","output_index":"#,
    ] {
        let event = event.replace("NEXT", &(last + 1).to_string());
        let relayed = relay(&format!("{created}data: {event}\n\n"), &[]);
        assert_eq!(relayed.text, ours(created));
        assert!(relayed.result.is_err(), "{event}");
        assert!(
            relayed.failed.contains(&next),
            "{event}: {}",
            relayed.failed
        );
    }
    // An opening that was refused was not relayed.
    let refused = r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_theirs","status":"failed"}}"#;
    let relayed = relay(&format!("data: {refused}\n\n"), &[]);
    let first = "event: error\ndata: {\"type\":\"error\",\"sequence_number\":0,";
    assert!(relayed.failed.starts_with(first), "{}", relayed.failed);
}

#[test]
fn a_failed_stream_ends_by_its_own_event() {
    let mut events = String::new();
    for name in [
        "response.created",
        "response.output_item.added",
        "response.completed",
    ] {
        write!(events, "before {name}:\n{}", relay(until(name), &[]).failed).unwrap();
    }
    insta::assert_snapshot!(events);
}

proptest! {
    #[test]
    fn chunking_changes_nothing(sizes in prop::collection::vec(1_usize..200, 1..20)) {
        prop_assert_eq!(relay(STREAM, &sizes), relay(STREAM, &[]));
    }
}
