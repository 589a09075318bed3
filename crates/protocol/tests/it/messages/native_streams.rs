//! Tests of Messages streams on the native path.

use bytes::Bytes;
use proptest::prelude::*;
use protocol::native::{AnswerSummary, Rewriter, UnusableAnswer};
use protocol::{ByteQueue, Code, Dialect};

use super::native_answers::identity;

#[derive(Debug, PartialEq)]
struct Relayed {
    text: String,
    summary: AnswerSummary,
    result: Result<(), UnusableAnswer>,
}

/// The output for a stream that arrives in pieces whose sizes are those in `sizes`, in a cycle.
fn relay(stream: &str, sizes: &[usize]) -> Relayed {
    let mut rewriter = Rewriter::new(Dialect::Messages, identity(), true);
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
    Relayed {
        text: String::from_utf8(out.into_bytes().to_vec()).unwrap(),
        summary: rewriter.summary().clone(),
        result,
    }
}

fn event(name: &str, members: &str) -> String {
    format!("event: {name}\ndata: {{\"type\":\"{name}\"{members}}}\n\n")
}

fn start() -> String {
    event(
        "message_start",
        r#","message":{"id":"msg_theirs","type":"message","role":"assistant","model":"up-2026","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":9,"cache_read_input_tokens":4,"output_tokens":1}}"#,
    )
}

fn text(text: &str) -> String {
    let text = serde_json::to_string(text).unwrap();
    event(
        "content_block_delta",
        &format!(r#","index":0,"delta":{{"type":"text_delta","text":{text}}}"#),
    )
}

fn body() -> String {
    [
        event(
            "content_block_start",
            r#","index":0,"content_block":{"type":"text","text":""}"#,
        ),
        event("ping", ""),
        text("Hello"),
        text(" wörld, how are you?"),
        event("content_block_stop", r#","index":0"#),
    ]
    .concat()
}

fn end() -> String {
    let delta =
        r#","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":7}"#;
    event("message_delta", delta) + &event("message_stop", "")
}

fn ours(text: &str) -> String {
    text.replace("msg_theirs", "msg_ours")
        .replace("up-2026", "maker/m")
}

#[test]
fn identity_is_replaced_in_place() {
    let stream = start() + &body() + &end();
    let relayed = relay(&stream, &[]);
    assert_eq!(relayed.text, ours(&stream));
    assert_eq!(relayed.result, Ok(()));
    assert!(relayed.summary.content && relayed.summary.ended);
    let usage = relayed.summary.usage.unwrap();
    assert_eq!((usage.input, usage.cached_input, usage.output), (9, 4, 7));
    assert!((5..=9).contains(&relayed.summary.output_tokens_counted));
}

#[test]
fn nothing_follows_the_end() {
    let stream = start() + &body() + &end();
    let late = stream.clone() + &text("late");
    assert_eq!(relay(&late, &[]), relay(&stream, &[]));
}

#[test]
fn a_stream_without_its_end_is_unfinished() {
    for stream in [
        start() + &body(),
        start() + &body() + &end().replace("message_stop", "message_halt"),
        start(),
        String::new(),
    ] {
        assert_eq!(relay(&stream, &[]).result, Err(UnusableAnswer::Unfinished));
    }
}

#[test]
fn usage_of_the_start_is_used_if_the_end_is_missing() {
    let relayed = relay(&(start() + &body()), &[]);
    assert_eq!(relayed.summary.usage, None);
    let usage = relayed.summary.counted(1_000);
    assert_eq!((usage.input, usage.cached_input), (9, 4));
    assert_eq!(usage.output, relayed.summary.output_tokens_counted);
    let silent = relay(&body(), &[]);
    assert_eq!(silent.summary.counted(1_000).input, 1_000);
}

#[test]
fn usage_of_the_end_is_final_only_if_it_has_the_output() {
    let stream = |usage: &str| {
        let end = event("message_delta", &format!(r#","usage":{usage}"#));
        start() + &body() + &end + &event("message_stop", "")
    };
    for (usage, input) in [
        ("{}", 9),
        ("null", 9),
        (r#"{"cache_read_input_tokens":4}"#, 9),
        (r#"{"input_tokens":12,"output_tokens":null}"#, 12),
    ] {
        let relayed = relay(&stream(usage), &[]);
        assert_eq!(relayed.result, Ok(()));
        let summary = relayed.summary;
        assert_eq!(summary.completed_report(1_000), None, "{usage}");
        assert!(!summary.usage_malformed, "{usage}");
        let charged = summary.counted(1_000);
        assert_eq!((charged.input, charged.cached_input), (input, 4), "{usage}");
        assert_eq!(charged.output, summary.output_tokens_counted, "{usage}");
    }
    // The type of an event may follow its usage.
    let end = r#"{"usage":{},"type":"message_delta"}"#;
    let late = start() + &body() + &format!("event: message_delta\ndata: {end}\n\n");
    let relayed = relay(&(late + &event("message_stop", "")), &[]);
    assert_eq!(relayed.summary.completed_report(1_000), None);
    // A report stays final if a later one says less.
    let relayed = relay(
        &(start()
            + &body()
            + &event("message_delta", r#","usage":{"output_tokens":7}"#)
            + &event("message_delta", r#","usage":{}"#)
            + &event("message_stop", "")),
        &[],
    );
    assert_eq!(relayed.summary.completed_report(1_000).unwrap().output, 7);
}

#[test]
fn the_first_content_is_seen() {
    for (piece, content) in [
        (start(), false),
        (event("ping", ""), false),
        (
            event(
                "content_block_start",
                r#","index":0,"content_block":{"type":"text","text":""}"#,
            ),
            false,
        ),
        (
            event(
                "content_block_start",
                r#","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}"#,
            ),
            false,
        ),
        (
            event(
                "content_block_start",
                r#","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}"#,
            ),
            true,
        ),
        (
            event(
                "content_block_start",
                r#","index":0,"content_block":{"type":"redacted_thinking","data":"xx"}"#,
            ),
            true,
        ),
        (
            event(
                "content_block_delta",
                r#","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}"#,
            ),
            true,
        ),
        (
            event(
                "content_block_delta",
                r#","index":0,"delta":{"type":"input_json_delta","partial_json":""}"#,
            ),
            false,
        ),
        (end(), false),
    ] {
        assert_eq!(relay(&piece, &[]).summary.content, content, "{piece}");
    }
}

#[test]
fn an_error_event_breaks_the_stream() {
    for (error, code) in [
        (
            event(
                "error",
                r#","error":{"type":"overloaded_error","message":"Overloaded"}"#,
            ),
            Code::UpstreamOverloaded,
        ),
        (
            "event: error\ndata: oops\n\n".to_owned(),
            Code::UpstreamError,
        ),
        (
            "data: {\"type\":\"error\"}\n\n".to_owned(),
            Code::UpstreamError,
        ),
    ] {
        let relayed = relay(&(start() + &body() + &error), &[]);
        assert_eq!(relayed.text, ours(&(start() + &body())));
        let Err(UnusableAnswer::Failure(failure)) = relayed.result else {
            panic!("{error}");
        };
        assert_eq!(failure.code, code, "{error}");
    }
}

proptest! {
    #[test]
    fn the_rewritten_stream_does_not_depend_on_chunking(
        texts in prop::collection::vec("[a-zé界😀\\\\n]{0,12}", 0..6),
        tail in prop::sample::select(vec![0, 1, 2, 3]),
        sizes in prop::collection::vec(1_usize..60, 1..9),
    ) {
        let tail = [end(), String::new(), "data: {".to_owned(), end() + &text("late")][tail].clone();
        let stream = start() + &texts.iter().map(|piece| text(piece)).collect::<String>() + &tail;
        prop_assert_eq!(relay(&stream, &sizes), relay(&stream, &[]));
        let crlf = stream.replace('\n', "\r\n");
        prop_assert_eq!(relay(&crlf, &sizes), relay(&crlf, &[]));
    }
}
