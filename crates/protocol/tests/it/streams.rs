//! Tests of the chat streams that a client receives, for any chunking of the upstream's bytes.

use bytes::Bytes;
use proptest::prelude::*;
use protocol::native::{AnswerSummary, Rewriter, UnusableAnswer};
use protocol::{ByteQueue, Code, Dialect};

use crate::answers::identity;

#[derive(Debug, PartialEq)]
struct Relayed {
    text: String,
    summary: AnswerSummary,
    result: Result<(), UnusableAnswer>,
}

fn relay(stream: &[u8], include_usage: bool, sizes: &[usize]) -> Relayed {
    let mut rewriter = Rewriter::new(Dialect::Chat, identity(), include_usage);
    let mut out = ByteQueue::new();
    let mut rest = Bytes::copy_from_slice(stream);
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

/// Relays a stream with our count of its input, and returns the text for the client.
fn relay_counting(stream: &str, include_usage: bool) -> String {
    let rewriter = Rewriter::new(Dialect::Chat, identity(), include_usage);
    let mut rewriter = rewriter.counting_usage(40);
    let mut out = ByteQueue::new();
    rewriter
        .push(Bytes::from(stream.to_owned()), &mut out)
        .unwrap();
    rewriter.end(&mut out).unwrap();
    String::from_utf8(out.into_bytes().to_vec()).unwrap()
}

fn chunk(rest: &str) -> String {
    format!(
        "data: {{\"id\":\"chatcmpl-theirs\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"up-2026\",{rest}}}\n\n"
    )
}

fn ours(text: &str) -> String {
    text.replace("chatcmpl-theirs", "chatcmpl_ours")
        .replace("up-2026", "maker/m")
}

fn delta(delta: &str) -> String {
    chunk(&format!(
        r#""choices":[{{"index":0,"delta":{delta},"finish_reason":null}}],"usage":null"#
    ))
}

const USAGE: &str =
    r#""choices":[],"usage":{"prompt_tokens":9,"completion_tokens":7,"total_tokens":16}"#;
const DONE: &str = "data: [DONE]\n\n";

fn plain_stream() -> String {
    [
        delta(r#"{"role":"assistant","content":""}"#),
        delta(r#"{"content":"Hello"}"#),
        delta(r#"{"content":" wörld, \u00e9"}"#),
        chunk(r#""choices":[{"index":0,"delta":{},"finish_reason":"stop"}]"#),
    ]
    .concat()
}

#[test]
fn identity_is_replaced_in_every_chunk() {
    let stream = plain_stream() + DONE;
    let relayed = relay(stream.as_bytes(), false, &[]);
    assert_eq!(relayed.text, ours(&stream));
    assert_eq!(relayed.result, Ok(()));
    assert!(relayed.summary.content && relayed.summary.ended);
    assert_eq!(relayed.summary.usage, None);
    assert!((3..=6).contains(&relayed.summary.output_tokens_counted));
}

#[test]
fn the_usage_chunk_is_withheld_unless_asked_for() {
    let stream = plain_stream() + &chunk(USAGE) + DONE;
    let withheld = relay(stream.as_bytes(), false, &[]);
    assert_eq!(withheld.text, ours(&(plain_stream() + DONE)));
    let asked = relay(stream.as_bytes(), true, &[]);
    assert_eq!(asked.text, ours(&stream));
    for relayed in [withheld, asked] {
        let usage = relayed.summary.usage.unwrap();
        assert_eq!((usage.input, usage.output), (9, 7));
    }
}

/// Some servers ignore `stream_options`.
#[test]
fn a_usage_chunk_that_the_upstream_owes_is_written_from_our_count() {
    let silent = plain_stream() + DONE;
    let shown = relay_counting(&silent, true);
    let rest = shown.strip_prefix(&ours(&plain_stream())).unwrap();
    let chunk_text = rest.strip_suffix(DONE).unwrap();
    assert!(chunk_text.contains("\"choices\":[]"), "{chunk_text}");
    assert!(chunk_text.contains("\"prompt_tokens\":40"), "{chunk_text}");
    assert_eq!(relay_counting(&silent, false), ours(&silent));
    // If the upstream reports usage, in a separate chunk or beside the last choice, the client gets no other
    // report.
    let beside = plain_stream().replace(
        r#""finish_reason":"stop"}]"#,
        r#""finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":7}"#,
    );
    for stream in [plain_stream() + &chunk(USAGE) + DONE, beside + DONE] {
        assert_eq!(relay_counting(&stream, true), ours(&stream));
    }
}

/// Clients read `choices[0].delta.content` of every chunk.
#[test]
fn a_delta_is_an_object_in_every_chunk() {
    let choice = |rest: &str| chunk(&format!(r#""choices":[{{"index":0,{rest}}}]"#));
    for (sent, relayed) in [
        (r#""delta":null"#, r#""delta":{}"#),
        (
            r#""delta":null,"finish_reason":"stop""#,
            r#""delta":{},"finish_reason":"stop""#,
        ),
        (
            r#""delta" : "","finish_reason":null"#,
            r#""delta" : {},"finish_reason":null"#,
        ),
        (
            r#""delta":null,"message":{"content":"a"}"#,
            r#""delta":{},"message":{"content":"a"}"#,
        ),
        (
            r#""delta":{"content":"a"},"message":null"#,
            r#""delta":{"content":"a"},"message":null"#,
        ),
    ] {
        let first = delta(r#"{"content":"Hello"}"#);
        let stream = first.clone() + &choice(sent) + DONE;
        for sizes in [&[usize::MAX][..], &[7]] {
            let shown = relay(stream.as_bytes(), false, sizes);
            assert_eq!(shown.result, Ok(()));
            let expected = ours(&(first.clone() + &choice(relayed) + DONE));
            assert_eq!(shown.text, expected, "{sent}");
        }
    }
    let finished = choice(r#""message":null,"finish_reason":"stop""#);
    let filled = finished.replace(r#"[{"index""#, r#"[{"delta":{},"index""#);
    let shown = relay((finished + DONE).as_bytes(), false, &[]);
    assert_eq!(shown.text, ours(&(filled + DONE)));
    // A notice of a content filter is withheld, even if its delta is `null`.
    let notice = choice(r#""delta":null,"finish_reason":null,"content_filter_results":{}"#);
    let shown = relay((notice + DONE).as_bytes(), false, &[]);
    assert_eq!(shown.text, DONE);
}

/// The client gets the report that it is charged for, and no other.
#[test]
fn a_malformed_usage_chunk_is_replaced_by_our_count() {
    let owed = relay_counting(&(plain_stream() + DONE), true);
    assert_eq!(owed.matches("\"completion_tokens\"").count(), 1);
    for usage in [
        r#""choices":[],"usage":{"prompt_tokens":-1}"#,
        r#""usage":{"prompt_tokens":-1,"cost":1}"#,
        r#""choices":[],"usage":"none""#,
    ] {
        let stream = plain_stream() + &chunk(usage) + DONE;
        assert_eq!(relay_counting(&stream, true), owed, "{usage}");
    }
    // Beside output, only the report is removed.
    let beside = |usage: &str| {
        let end = format!(r#""choices":[{{"index":0,"delta":{{"content":"x"}}}}],"usage":{usage}"#);
        plain_stream() + &chunk(&end)
    };
    let shown = relay_counting(&(beside(r#"{"prompt_tokens":-1}"#) + DONE), true);
    let rest = shown.strip_prefix(&ours(&beside("null"))).unwrap();
    assert_eq!(rest.matches("\"completion_tokens\"").count(), 1, "{rest}");
    // A malformed report after a good one is not shown either.
    let good = plain_stream() + &chunk(USAGE);
    let bad = chunk(r#""choices":[],"usage":{"prompt_tokens":-1}"#);
    let shown = relay_counting(&(good.clone() + &bad + DONE), true);
    assert_eq!(shown, ours(&(good + DONE)));
}

#[test]
fn usage_chunks_are_known_in_every_form() {
    for usage in [
        r#""usage":{"prompt_tokens":1,"completion_tokens":2}"#,
        r#""usage":{"prompt_tokens":1,"completion_tokens":2},"choices":null"#,
        r#""choices": [ ],"usage":{"prompt_tokens":1,"completion_tokens":2}"#,
        r#""choices":[],"usage":{"prompt_tokens":-1}"#,
    ] {
        let stream =
            format!("data: {{\"id\":\"x\",\"created\":7,\"model\":\"maker/m\",{usage}}}\n\n{DONE}");
        assert_eq!(relay(stream.as_bytes(), false, &[]).text, DONE, "{usage}");
        let asked = relay(stream.as_bytes(), true, &[]).text;
        assert_eq!(asked, stream.replace("\"x\"", "\"chatcmpl_ours\""));
    }
}

#[test]
fn usage_beside_choices_is_shown_on_request_and_the_last_report_wins() {
    let report = |tokens: i32| {
        chunk(&format!(
            r#""choices":[{{"index":0,"delta":{{"content":"x"}}}}],"usage":{{"prompt_tokens":5,"completion_tokens":{tokens}}}"#
        ))
    };
    let stream = report(1) + &report(3) + &report(2) + DONE;
    let relayed = relay(stream.as_bytes(), true, &[]);
    assert_eq!(relayed.text, ours(&stream));
    assert_eq!(relayed.summary.usage.unwrap().output, 2);
    assert!(!relayed.summary.usage_malformed);
    // An invalid report does not replace a valid one.
    let stream = report(3) + &report(-1) + DONE;
    let relayed = relay(stream.as_bytes(), false, &[]);
    assert_eq!(relayed.summary.usage.unwrap().output, 3);
    assert!(relayed.summary.usage_malformed);
}

#[test]
fn identity_is_found_in_any_order_or_filled_in() {
    for (event, expected) in [
        (
            r#"{"created":7,"choices":[{"index":0,"delta":{"content":"a"}}],"model":"up","id":"x"}"#,
            r#"{"created":7,"choices":[{"index":0,"delta":{"content":"a"}}],"model":"maker/m","id":"chatcmpl_ours"}"#,
        ),
        (
            r#"{"id":"","model":"up","created":7,"choices":[{"index":0,"delta":{"id":"y","model":"z"}}]}"#,
            r#"{"id":"chatcmpl_ours","model":"maker/m","created":7,"choices":[{"index":0,"delta":{"id":"y","model":"z"}}]}"#,
        ),
        (
            r#"{"choices":[{"index":0,"delta":{}}]}"#,
            r#"{"id":"chatcmpl_ours","created":1794867059,"model":"maker/m","choices":[{"index":0,"delta":{}}]}"#,
        ),
        (
            r#"{"id":"","created":0,"choices":[{}]}"#,
            r#"{"model":"maker/m","id":"chatcmpl_ours","created":1794867059,"choices":[{"index":0}]}"#,
        ),
        (r#"{"object":"ping"}"#, r#"{"object":"ping"}"#),
        (
            r#"{"i\u0064":"x","id":"y","choices":[1],"created":7,"model":"up"}"#,
            r#"{"i\u0064":"chatcmpl_ours","id":"chatcmpl_ours","choices":[1],"created":7,"model":"maker/m"}"#,
        ),
    ] {
        // Repeated, so that later events use the known prefix of the first one.
        let stream = format!("data: {event}\n\ndata:{event}\r\n\r\ndata: {event}\n\n{DONE}");
        let relayed = relay(stream.as_bytes(), false, &[]);
        assert_eq!(relayed.text, stream.replace(event, expected));
        assert_eq!(relayed.result, Ok(()));
    }
}

#[test]
fn a_known_start_hides_nothing_after_it() {
    let first = chunk(r#""choices":[{"index":0,"delta":{"content":"a"}}]"#);
    for (next, expected) in [
        (
            chunk(r#""choices":[{"index":0,"delta":{}}],"id":"again","model":"up-again""#),
            chunk(r#""choices":[{"index":0,"delta":{}}],"id":"chatcmpl_ours","model":"maker/m""#),
        ),
        (
            first.replace(r#"model":"up-2026"#, r#"model":"up-20267"#),
            { first.replace("up-2026", "maker/m") },
        ),
        (
            first.replace(r#","choices"#, r#" , "choices"#),
            first.replace(r#","choices"#, r#" , "choices"#),
        ),
    ] {
        let stream = format!("{first}{next}{DONE}");
        let relayed = relay(stream.as_bytes(), false, &[]);
        assert_eq!(relayed.text, ours(&format!("{first}{expected}{DONE}")));
    }
    let errors = [
        chunk(r#""error":{"message":"late"}"#),
        chunk(r#""choices":[}"#),
        chunk(r#""choices":[]"#).replace('}', "}}"),
    ];
    for error in errors {
        let stream = format!("{first}{error}{DONE}");
        let relayed = relay(stream.as_bytes(), false, &[]);
        assert_eq!(relayed.text, ours(&first), "{error}");
        assert!(relayed.result.is_err(), "{error}");
    }
}

#[test]
fn the_end_mark_is_known_in_every_form_and_nothing_follows_it() {
    for end in [
        "data: [DONE]\n\n",
        "data:[DONE]\n\n",
        "data:   [DONE]  \r\n\r\n",
        "data: [DONE]\n",
        "data: [DONE]\r",
        "data: [DONE]",
        ": last\ndata: [DONE]\n\n",
        "event: done\ndata: [DONE]\n\n",
        "data: [DONE]\n\ndata: {\"late\":1}\n\n",
        "data: [DONE]\n\ngarbage",
    ] {
        for sizes in [&[][..], &[1], &[3, 2]] {
            let relayed = relay(end.as_bytes(), false, sizes);
            assert_eq!(relayed.text, DONE, "{end:?}");
            assert!(relayed.summary.ended && !relayed.summary.content);
            assert_eq!(relayed.result, Ok(()));
        }
    }
}

#[test]
fn keep_alives_pass_in_our_words_and_empty_events_do_not() {
    let comments = ": keep-alive\n\n\n: ACME PROCESSING\r\n\r\n";
    let stream = format!("{comments}event: ping\n\ndata:\n\nid: 7\nretry: 1\n\n{DONE}");
    let relayed = relay(stream.as_bytes(), false, &[]);
    let ours = ": keep-alive\n\n".repeat(2);
    assert_eq!(relayed.text, format!("{ours}{DONE}"));
    assert!(!relayed.summary.content);
}

#[test]
fn data_of_several_lines_is_rewritten_in_place() {
    let stream = "event: chunk\r\ndata: {\"id\":\r\ndata: \"x\", \"created\":7,\"model\":\"maker/m\",\"choices\":[{\"index\":0,\"delta\":\r\ndata:{\"content\":\"a\"}}]}\r\n\r\n";
    let relayed = relay(format!("{stream}{DONE}").as_bytes(), false, &[]);
    let expected = stream.replace("\"x\"", "\"chatcmpl_ours\"");
    assert_eq!(relayed.text, format!("{expected}{DONE}"));
    assert!(relayed.summary.content);
    // A string cannot continue on the next line.
    let broken = relay(b"data: {\"id\":\"a\ndata: b\"}\n\n", false, &[]);
    assert!(matches!(broken.result, Err(UnusableAnswer::Malformed(_))));
}

#[test]
fn output_is_whatever_is_not_the_role() {
    for (delta_text, content, tokens) in [
        (r#"{"role":"assistant"}"#, false, 0..=0),
        (r#"{"role":"assistant","content":""}"#, false, 0..=0),
        (
            r#"{"content":null,"refusal":null,"tool_calls":[]}"#,
            false,
            0..=0,
        ),
        ("null", false, 0..=0),
        ("{}", false, 0..=0),
        (r#"{"content":"Hello"}"#, true, 1..=2),
        (
            r#"{"content":[{"type":"text","text":"Hello"}]}"#,
            true,
            1..=2,
        ),
        (r#"{"refusal":"No"}"#, true, 1..=2),
        (r#"{"reasoning_content":"Let me think"}"#, true, 3..=4),
        (
            r#"{"reasoning":"Let me","reasoning_content":"Let me"}"#,
            true,
            2..=3,
        ),
        (
            r#"{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"find","arguments":""}}]}"#,
            true,
            1..=2,
        ),
        (
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":\"Oslo\"}"}}]}"#,
            true,
            4..=8,
        ),
        (r#"{"function_call":{"name":"find"}}"#, true, 1..=2),
        (
            r#"{"audio":{"id":"a","data":"QUJD","transcript":"Hello"}}"#,
            true,
            1..=2,
        ),
        (r#"{"reasoning_details":[{"data":"xyz"}]}"#, true, 0..=0),
    ] {
        let stream = delta(delta_text) + DONE;
        let summary = relay(stream.as_bytes(), false, &[]).summary;
        assert_eq!(summary.content, content, "{delta_text}");
        assert!(
            tokens.contains(&summary.output_tokens_counted),
            "{delta_text}: {summary:?}"
        );
    }
}

#[test]
fn output_is_counted_over_all_deltas_and_choices() {
    let words: Vec<String> = (0..100).map(|_| delta(r#"{"content":" word"}"#)).collect();
    let both = chunk(
        r#""choices":[{"index":0,"delta":{"content":" one"}},{"index":1,"delta":{"content":" two"}}]"#,
    );
    let stream = words.concat() + &both + DONE;
    let summary = relay(stream.as_bytes(), false, &[]).summary;
    assert!(
        (100..=115).contains(&summary.output_tokens_counted),
        "{summary:?}"
    );
}

#[test]
fn a_stream_that_breaks_is_broken_and_keeps_what_was_good() {
    let good = delta(r#"{"content":"Hello"}"#);
    for (bad, code) in [
        ("data: {}\n\n", Code::UpstreamError),
        ("data: [1]\n\n", Code::UpstreamError),
        ("data: null\n\n", Code::UpstreamError),
        ("data: {\"choices\":[\n\n", Code::UpstreamError),
        ("data: {\"choices\":{}}\n\n", Code::UpstreamError),
        ("data: nonsense\n\n", Code::UpstreamError),
        (
            "data: {\"error\":{\"message\":\"m\",\"code\":429}}\n\n",
            Code::UpstreamOverloaded,
        ),
        (
            "data: {\"error\":{\"message\":\"m\",\"type\":\"invalid_request_error\"}}\n\n",
            Code::UpstreamRejected,
        ),
        (
            "data: {\"choices\":[],\"error\":\"x\"}\n\n",
            Code::UpstreamError,
        ),
        (
            "data: {\"object\":\"error\",\"code\":503}\n\n",
            Code::UpstreamOverloaded,
        ),
        (
            "event: error\ndata: {\"message\":\"m\",\"code\":400}\n\n",
            Code::UpstreamRejected,
        ),
        ("event: error\ndata: oops\n\n", Code::UpstreamError),
        // The connection ends.
        ("", Code::UpstreamError),
        ("data: {\"id\":\"half", Code::UpstreamError),
        ("data: [DON", Code::UpstreamError),
        ("data: [DONE]x", Code::UpstreamError),
        (
            "{\"error\":{\"message\":\"no stream at all\"}}",
            Code::UpstreamError,
        ),
    ] {
        let stream = format!("{good}{bad}");
        let relayed = relay(stream.as_bytes(), false, &[]);
        assert_eq!(relayed.text, ours(&good), "{bad}");
        assert!(!relayed.summary.ended && relayed.summary.content);
        assert_eq!(
            relayed.result.unwrap_err().into_failure().code,
            code,
            "{bad}"
        );
    }
    let invalid = relay(b"data: {\"choices\":[],\"x\":\"\xff\"}\n\n", false, &[]);
    assert!(matches!(invalid.result, Err(UnusableAnswer::Malformed(_))));
}

#[test]
fn an_endless_event_is_refused() {
    let mut rewriter = Rewriter::new(Dialect::Chat, identity(), false);
    let mut out = ByteQueue::new();
    let piece = Bytes::from(vec![b'x'; 1 << 20]);
    let results: Vec<_> = (0..20)
        .map(|_| rewriter.push(piece.clone(), &mut out))
        .collect();
    assert!(matches!(
        results.last(),
        Some(Err(UnusableAnswer::TooLarge(_)))
    ));
    assert!(out.is_empty());
}

#[test]
fn the_bytes_of_one_read_are_sent_as_one_piece() {
    let stream = plain_stream() + DONE;
    let mut rewriter = Rewriter::new(Dialect::Chat, identity(), false);
    let mut out = ByteQueue::new();
    rewriter.push(Bytes::from(stream), &mut out).unwrap();
    assert!(out.pop().is_some());
    assert!(out.pop().is_none());
}

#[test]
fn a_large_event_is_not_copied() {
    let event = Bytes::from(delta(&format!(
        r#"{{"content":"{}"}}"#,
        "word ".repeat(4_000)
    )));
    let mut rewriter = Rewriter::new(Dialect::Chat, identity(), false);
    let mut out = ByteQueue::new();
    rewriter.push(event.clone(), &mut out).unwrap();
    out.pop().unwrap();
    let large = out.pop().unwrap();
    assert!(event.as_ptr_range().contains(&large.as_ptr()));
}

/// Streams of plausible and of strange events.
fn any_stream() -> impl Strategy<Value = String> {
    let event = prop_oneof![
        4 => "[a-zA-Z .,é界😀\\\\n]{0,20}".prop_map(|text| {
            delta(&format!("{{\"content\":{}}}", serde_json::to_string(&text).unwrap()))
        }),
        1 => Just(chunk(USAGE)),
        1 => Just(": keep-alive\n\n".to_owned()),
        1 => Just("event: ping\n\n".to_owned()),
        1 => Just("data: {\"choices\":[{}],\"id\":\"x\",\r\ndata: \"model\":\"y\"}\r\n\r\n".to_owned()),
        1 => Just(delta("{}").replace('\n', "\r\n")),
        1 => Just("data: {\"created\":5,\"id\":\"other\",\"choices\":[]}\n\n".to_owned()),
    ];
    let end = prop::sample::select(vec![
        DONE,
        "data:[DONE]\r\n\r\n",
        "data: [DONE]\n",
        "",
        "data: {\"id\":",
        "data: {\"error\":{}}\n\n",
        "data: [DONE]\n\ndata: late\n\n",
    ]);
    (prop::collection::vec(event, 0..12), end).prop_map(|(events, end)| events.concat() + end)
}

proptest! {
    #[test]
    fn the_rewritten_stream_does_not_depend_on_chunking(
        stream in any_stream(),
        include_usage in any::<bool>(),
        sizes in prop::collection::vec(1_usize..40, 1..9),
    ) {
        let whole = relay(stream.as_bytes(), include_usage, &[]);
        let pieces = relay(stream.as_bytes(), include_usage, &sizes);
        prop_assert_eq!(pieces, whole);
    }

    #[test]
    fn a_rewrite_changes_only_its_spans(
        texts in prop::collection::vec("[ -~é界]{0,30}", 1..8),
    ) {
        let stream: String = texts
            .iter()
            .map(|text| delta(&format!("{{\"content\":{}}}", serde_json::to_string(text).unwrap())))
            .collect();
        let relayed = relay(format!("{stream}{DONE}").as_bytes(), false, &[]);
        let prefix = "data: {\"id\":\"chatcmpl-theirs\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"up-2026\"";
        let expected = format!("{stream}{DONE}").replace(prefix, &ours(prefix));
        prop_assert_eq!(relayed.text, expected);
    }

    #[test]
    fn no_bytes_make_it_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        at in 0_usize..400,
    ) {
        let mut stream = plain_stream().into_bytes();
        let at = at.min(stream.len());
        stream.splice(at..at, bytes);
        let mut rewriter = Rewriter::new(Dialect::Chat, identity(), false);
        let _ = rewriter.push(Bytes::from(stream), &mut ByteQueue::new());
        let _ = rewriter.end(&mut ByteQueue::new());
    }
}

/// Azure sends the results of its content filters in separate chunks. Before the text, these chunks have no
/// choices. After the end, their choices have no delta. The last chunk may say that the filter has stopped the
/// answer after all.
#[test]
fn notices_of_a_content_filter_are_withheld() {
    let choice = |rest: &str| chunk(&format!(r#""choices":[{{"index":0,{rest}}}],"usage":null"#));
    let prompt = "data: {\"id\":\"\",\"object\":\"\",\"created\":0,\"model\":\"\",\"choices\":[],\"prompt_filter_results\":[{\"prompt_index\":0}],\"usage\":null}\n\n";
    let text = delta(r#"{"content":"hi"}"#);
    let end = choice(r#""delta":{},"finish_reason":"stop""#);
    let notice = choice(
        r#""finish_reason":null,"content_filter_results":{},"content_filter_offsets":{"check_offset":44}"#,
    );
    let stopped = choice(r#""finish_reason":"content_filter","content_filter_results":{}"#);
    let usage = chunk(USAGE);
    let stream = [
        prompt, &text, &notice, &end, &notice, &stopped, &usage, DONE,
    ]
    .concat();
    let filled = stopped.replace(r#"[{"index""#, r#"[{"delta":{},"index""#);
    for sizes in [&[usize::MAX][..], &[7], &[1, 200]] {
        let hidden = relay(stream.as_bytes(), false, sizes);
        assert_eq!(hidden.result, Ok(()));
        assert_eq!(hidden.text, ours(&[&text, &end, &filled, DONE].concat()));
        assert!(hidden.summary.usage.is_some());
        let shown = relay(stream.as_bytes(), true, sizes);
        assert_eq!(
            shown.text,
            ours(&[&text, &end, &filled, &usage, DONE].concat())
        );
    }
}
