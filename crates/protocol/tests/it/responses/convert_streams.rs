//! Tests that convert streams into the common form and back.

use bytes::Bytes;
use proptest::prelude::*;
use protocol::canon::{Block, Delta, Event, Opaque, Request, Response, ResponseBuilder, Stop};
use protocol::native::UnusableAnswer;
use protocol::responses::{Reader, Writer, read_response, write_response};
use protocol::sse::Splitter;
use protocol::{ByteQueue, Code, Dialect, Failure};
use serde_json::{Value, json};

use super::any::{MODEL, any_response, context};
use super::validator::replay;

const STREAM: &str = include_str!("../../../fixtures/responses/stream.sse");

/// The events of a stream that arrives in pieces whose sizes are those in `sizes`, in a cycle.
fn read(stream: &str, sizes: &[usize]) -> (Vec<Event>, Result<(), UnusableAnswer>) {
    let mut splitter = Splitter::default();
    let mut reader = Reader::new(MODEL);
    let mut events = Vec::new();
    let mut rest = Bytes::copy_from_slice(stream.as_bytes());
    let mut sizes = sizes.iter().cycle();
    while !rest.is_empty() {
        let size = sizes.next().copied().unwrap_or(usize::MAX);
        splitter.push(rest.split_to(size.clamp(1, rest.len())));
        while let Some(frame) = splitter.next_frame().unwrap() {
            if let Err(broken) = reader.frame(&frame, &mut events) {
                return (events, Err(broken));
            }
        }
    }
    let end = reader.end(&mut events);
    (events, end)
}

fn write(events: impl IntoIterator<Item = Event>) -> String {
    let mut writer = Writer::new(context(Request::default()));
    let mut out = ByteQueue::new();
    for event in events {
        writer.event(event, &mut out);
    }
    String::from_utf8(out.into_bytes().to_vec()).unwrap()
}

fn build_response(events: Vec<Event>) -> Response {
    let mut builder = ResponseBuilder::default();
    let response = events.into_iter().find_map(|event| builder.push(event));
    response.expect("an end").unwrap()
}

/// Panics if the events do not obey the grammar. Returns whether they have ended.
fn check_grammar(events: &[Event]) -> bool {
    let mut open: Option<&Block> = None;
    let mut ended = false;
    for (number, event) in events.iter().enumerate() {
        assert!(!ended, "{events:#?}");
        assert_eq!(*event == Event::Start, number == 0, "{events:#?}");
        match event {
            Event::Start => {}
            Event::BlockStart(block) => assert!(open.replace(block).is_none(), "{events:#?}"),
            Event::BlockStop => assert!(open.take().is_some(), "{events:#?}"),
            Event::Delta(delta) => {
                let block = open.expect("an open block");
                let call = matches!(block, Block::ToolCall { .. });
                let arguments = matches!(delta, Delta::Arguments(_));
                assert!(
                    call == arguments || matches!(delta, Delta::Opaque(_)),
                    "{events:#?}"
                );
            }
            Event::Usage(_) => assert!(open.is_none()),
            Event::Finish(_) | Event::Failed(_) => {
                assert!(open.is_none(), "{events:#?}");
                ended = true;
            }
        }
    }
    ended
}

#[test]
fn the_reference_stream_is_read() {
    let (events, end) = read(STREAM, &[]);
    assert_eq!(end, Ok(()));
    insta::assert_debug_snapshot!(events);
}

#[test]
fn a_stream_is_written_as_clients_want_it() {
    let (events, _) = read(STREAM, &[]);
    let stream = write(events);
    replay(&stream);
    insta::assert_snapshot!(stream);
}

fn event(value: Value) -> String {
    format!("data: {value}\n\n")
}

fn item(index: u64, kind: &str, item: Value) -> String {
    event(
        json!({"type": format!("response.output_item.{kind}"), "output_index": index, "item": item}),
    )
}

fn delta(kind: &str, index: u64, text: &str) -> String {
    event(
        json!({"type": format!("response.{kind}.delta"), "output_index": index, "content_index": 0, "delta": text}),
    )
}

fn call(id: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "f", "arguments": arguments})
}

fn message(text: &str) -> Value {
    json!({"type": "message", "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn message_called(id: &str, text: &str) -> Value {
    let mut message = message(text);
    message["id"] = id.into();
    message
}

fn named_delta(id: &str, index: u64, text: &str) -> String {
    event(
        json!({"type": "response.output_text.delta", "item_id": id, "output_index": index, "content_index": 0, "delta": text}),
    )
}

fn completed(output: Value) -> String {
    event(
        json!({"type": "response.completed", "response": {"status": "completed", "output": output}}),
    )
}

/// The blocks of an answer in a short notation.
fn shown(stream: &str) -> String {
    let (events, end) = read(stream, &[]);
    end.unwrap();
    assert!(check_grammar(&events));
    let response = build_response(events);
    let blocks = response.blocks.iter().map(|block| match &block.kind {
        Block::ToolCall { id, .. } => format!("{id}({})", block.text),
        kind => format!("{kind:?}({})", block.text),
    });
    let blocks: Vec<String> = blocks.collect();
    format!("{} {:?}", blocks.join(" "), response.stop)
}

#[test]
fn interleaved_items_are_put_in_a_row() {
    let stream = [
        item(0, "added", call("a", "")),
        item(1, "added", call("b", "")),
        delta("function_call_arguments", 1, "{\"b\""),
        delta("function_call_arguments", 0, "{\"a\""),
        delta("output_text", 2, "Hi"),
        delta("function_call_arguments", 1, ":1}"),
        item(1, "done", call("b", "{\"b\":1}")),
        delta("function_call_arguments", 0, ":1}"),
        item(0, "done", call("a", "{\"a\":1}")),
        item(2, "done", message("Hi")),
        completed(json!([
            call("a", "{\"a\":1}"),
            call("b", "{\"b\":1}"),
            message("Hi")
        ])),
    ];
    assert_eq!(
        shown(&stream.concat()),
        r#"a({"a":1}) b({"b":1}) Text(Hi) ToolCalls"#
    );
}

#[test]
fn calls_that_share_an_item_id_stay_separate() {
    let shared = |call_id: &str, arguments: &str| {
        let mut call = call(call_id, arguments);
        call["id"] = "fc".into();
        call
    };
    let whole = json!([shared("a", "{\"a\":1}"), shared("b", "{\"b\":1}")]);
    let stream = [
        item(0, "added", shared("a", "")),
        item(0, "done", shared("a", "{\"a\":1}")),
        item(1, "added", shared("b", "")),
        item(1, "done", shared("b", "{\"b\":1}")),
        completed(whole.clone()),
    ];
    let expected = r#"a({"a":1}) b({"b":1}) ToolCalls"#;
    assert_eq!(shown(&stream.concat()), expected);
    assert_eq!(shown(&completed(whole)), expected);
}

#[test]
fn an_answer_of_too_many_items_is_refused_at_once() {
    let output = vec![json!({"type": "message"}); 200_000];
    let (_, end) = read(&completed(output.into()), &[]);
    assert!(end.is_err());
}

#[test]
fn interleaved_parts_are_passed_on_once() {
    let piece = |part: u64, text: &str| {
        event(
            json!({"type": "response.output_text.delta", "output_index": 0, "content_index": part, "delta": text}),
        )
    };
    let text = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
    let done = json!({"type": "message", "content": [text("ab"), text("c"), text("d")]});
    let stream = piece(0, "a")
        + &piece(1, "c")
        + &piece(0, "b")
        + &item(0, "done", done.clone())
        + &completed(json!([done]));
    assert_eq!(shown(&stream), "Text(a) Text(c) Text(b) Text(d) End");
}

#[test]
fn missing_deltas_are_taken_from_complete_items() {
    let whole = || json!([message("Hello"), call("a", "{}")]);
    let expected = "Text(Hello) a({}) ToolCalls";
    for (stream, expected) in [
        // Only the last event.
        (completed(whole()), expected),
        // Items without deltas.
        (
            item(0, "done", message("Hello"))
                + &item(1, "done", call("a", ""))
                + &completed(whole()),
            expected,
        ),
        // Only deltas, and a last event that repeats nothing.
        (
            delta("output_text", 0, "Hello") + &completed(json!([])),
            "Text(Hello) End",
        ),
        // Nothing is passed on twice.
        (
            item(1, "added", message(""))
                + &delta("output_text", 1, "Hello")
                + &item(1, "done", message("Hello"))
                + &completed(json!([message("Hello")])),
            "Text(Hello) End",
        ),
        // Items without an event that ends them.
        (
            delta("output_text", 0, "Hello")
                + &item(1, "added", call("a", ""))
                + &completed(json!(null)),
            expected,
        ),
        // A call whose name comes last.
        (
            delta("function_call_arguments", 0, "{\"x\":1}")
                + &item(0, "done", call("a", "{\"x\":1}"))
                + &completed(json!([])),
            r#"a({"x":1}) ToolCalls"#,
        ),
        // An item that has ended does not start again.
        (
            item(0, "done", call("a", "{}"))
                + &item(0, "added", call("a", ""))
                + &delta("function_call_arguments", 0, "{}")
                + &completed(json!([])),
            "a({}) ToolCalls",
        ),
        // A different item with the same index.
        (
            item(0, "done", message("Hello"))
                + &item(0, "added", call("a", ""))
                + &completed(json!([])),
            expected,
        ),
        // Reasoning that is only in the last event, and a text that is not repeated.
        (
            delta("output_text", 0, "Hello")
                + &completed(json!([{"type": "reasoning", "summary": []}, message("Hello")])),
            "Text(Hello) End",
        ),
        // An id that differs in every event, because the upstream encrypts it each time.
        (
            item(0, "added", message_called("m1", ""))
                + &named_delta("m2", 0, "Hel")
                + &named_delta("m3", 0, "lo")
                + &item(0, "done", message_called("m4", "Hello"))
                + &completed(json!([message_called("m5", "Hello")])),
            "Text(Hello) End",
        ),
        // The same index for every item. Their ids distinguish them.
        (
            item(0, "added", message_called("m1", ""))
                + &named_delta("m1", 0, "Hello")
                + &item(0, "added", call("a", ""))
                + &item(0, "done", message_called("m1", "Hello"))
                + &item(0, "done", call("a", "{}"))
                + &completed(whole()),
            expected,
        ),
        // A refusal ends the answer.
        (
            delta("refusal", 0, "No.") + &completed(json!([])),
            "Refusal(No.) Refusal { category: None }",
        ),
        // Unknown events, and the end mark of another protocol.
        (
            event(json!({"type": "response.brand_new", "output_index": 7}))
                + &completed(whole())
                + "data: [DONE]\n\n",
            expected,
        ),
    ] {
        assert_eq!(shown(&stream), expected, "{stream}");
    }
}

#[test]
fn summaries_are_paragraphs() {
    let summary = |index: u64, text: &str| {
        event(
            json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": index, "delta": text}),
        )
    };
    let done = json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "One two"}, {"type": "summary_text", "text": "Three"}], "encrypted_content": "E"});
    let stream = summary(0, "One ")
        + &summary(0, "two")
        + &summary(1, "Three")
        + &delta("reasoning_text", 0, "raw")
        + &item(0, "done", done.clone());
    let (events, _) = read(&(stream + &completed(json!([done.clone()]))), &[]);
    let streamed = build_response(events);
    assert_eq!(streamed.blocks[0].text, "One two\n\nThree");
    let (events, _) = read(&completed(json!([done])), &[]);
    assert_eq!(build_response(events), streamed);
}

#[test]
fn citations_are_passed_on_once() {
    let citation =
        json!({"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 2});
    let mut done = message("Hi");
    done["content"][0]["annotations"] = json!([citation]);
    let added = event(
        json!({"type": "response.output_text.annotation.added", "output_index": 0, "content_index": 0, "annotation": citation}),
    );
    let part = event(
        json!({"type": "response.content_part.done", "output_index": 0, "content_index": 0, "part": done["content"][0]}),
    );
    let end = item(0, "done", done.clone()) + &completed(json!([done]));
    for between in [String::new(), added.clone(), part.clone(), added + &part] {
        let stream = delta("output_text", 0, "Hi") + &between + &end;
        let (events, _) = read(&stream, &[]);
        assert!(check_grammar(&events));
        let response = build_response(events);
        assert_eq!(response.blocks.len(), 1);
        assert_eq!(
            response.blocks[0].citations,
            [("u".into(), "t".into(), 0, 2)]
        );
    }
}

#[test]
fn a_stream_that_breaks_is_not_an_answer() {
    let begun = delta("output_text", 0, "Hello");
    let failed = |stream: &str| match read(&(begun.clone() + stream), &[]).1 {
        Err(UnusableAnswer::Failure(failure)) => failure.code,
        other => panic!("{stream}: {other:?}"),
    };
    assert_eq!(read(&begun, &[]).1, Err(UnusableAnswer::Unfinished));
    assert_eq!(read("", &[]).1, Err(UnusableAnswer::Unfinished));
    for stream in [
        "data: {\n\n",
        "data: {}\n\n",
        "data: 1\n\n",
        "data: \"\\ud800\"\n\n",
    ] {
        assert!(
            matches!(read(stream, &[]).1, Err(UnusableAnswer::Malformed(_))),
            "{stream}"
        );
    }
    let error = json!({"type": "error", "code": "server_error", "message": "up"});
    assert_eq!(failed(&event(error)), Code::UpstreamError);
    let error = json!({"error": {"code": "rate_limit_exceeded"}});
    assert_eq!(failed(&event(error)), Code::UpstreamOverloaded);
    let named = "event: error\ndata: {\"message\":\"up\"}\n\n";
    assert_eq!(failed(named), Code::UpstreamError);
    let last = json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error"}}});
    assert_eq!(failed(&event(last)), Code::UpstreamError);
    let nameless = delta("function_call_arguments", 1, "{}") + &completed(json!([]));
    assert!(matches!(
        read(&nameless, &[]).1,
        Err(UnusableAnswer::Malformed(_))
    ));
}

#[test]
fn an_answer_has_a_limit_of_items() {
    let many: String = (0..2000)
        .map(|number| named_delta(&format!("m{number}"), number, "a"))
        .collect();
    assert!(matches!(
        read(&many, &[]).1,
        Err(UnusableAnswer::Malformed(_))
    ));
}

#[test]
fn a_failed_answer_ends_by_its_own_event() {
    let failure = || Event::Failed(Failure::upstream_error());
    let first = write([failure()]);
    assert!(first.starts_with("event: error\ndata: {\"type\":\"error\",\"sequence_number\":0,"));
    let text = Event::Delta(Delta::Text("Hello".to_owned()));
    let stream = write([
        Event::Start,
        Event::BlockStart(Block::Text),
        text,
        Event::BlockStop,
        failure(),
    ]);
    let response = replay(&stream);
    assert_eq!(response["error"]["code"], "upstream_error");
    assert!(!stream.contains("response.completed"));
}

#[test]
fn a_calls_signature_goes_before_it() {
    let opaque = Opaque {
        origin: Dialect::Generate,
        model: "g/m".into(),
        text: "sig".into(),
    };
    let block = Block::ToolCall {
        id: "c".to_owned(),
        name: "f".to_owned(),
    };
    let signed = |events: [Event; 2]| {
        let events = [Event::Start, Event::BlockStart(block.clone())]
            .into_iter()
            .chain(events)
            .chain([Event::BlockStop, Event::Finish(Stop::ToolCalls)]);
        let response = replay(&write(events));
        let output = response["output"].as_array().unwrap().clone();
        let at = output
            .iter()
            .position(|item| item["type"] == "reasoning")
            .unwrap();
        let sealed = output[at]["encrypted_content"].as_str().unwrap();
        assert_eq!(Opaque::unwrap(sealed).as_ref(), Some(&opaque));
        at
    };
    let signature = Event::Delta(Delta::Opaque(opaque.clone()));
    let arguments = Event::Delta(Delta::Arguments("{}".to_owned()));
    assert_eq!(signed([signature.clone(), arguments.clone()]), 0);
    assert_eq!(signed([arguments, signature]), 1);
}

/// Cuts the deltas of an answer into pieces of a few characters.
fn in_pieces(response: Response, size: usize) -> Vec<Event> {
    let cut = |text: String, delta: fn(String) -> Delta| {
        let chars: Vec<char> = text.chars().collect();
        let pieces = chars
            .chunks(size)
            .map(|piece| Event::Delta(delta(piece.iter().collect())));
        pieces.collect::<Vec<_>>()
    };
    let events = response.into_events().flat_map(|event| match event {
        Event::Delta(Delta::Text(text)) => cut(text, Delta::Text),
        Event::Delta(Delta::Arguments(text)) => cut(text, Delta::Arguments),
        event => vec![event],
    });
    events.collect()
}

fn any_event() -> impl Strategy<Value = Value> {
    let kinds = prop::sample::select(vec![
        "created",
        "output_item.added",
        "output_item.done",
        "content_part.added",
        "content_part.done",
        "output_text.delta",
        "output_text.done",
        "refusal.delta",
        "reasoning_summary_text.delta",
        "reasoning_text.delta",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_text.annotation.added",
        "completed",
        "incomplete",
    ]);
    let item = prop::sample::select(vec![
        message("Hi"),
        message(""),
        call("a", "{}"),
        call("b", ""),
        json!({"type": "reasoning", "summary": [], "encrypted_content": "E"}),
        json!({"type": "web_search_call"}),
        json!({"type": "function_call", "call_id": "x"}),
    ]);
    (kinds, 0..3_u64, 0..2_u64, "[a-z]{0,3}", item.clone(), prop::collection::vec(item, 0..3)).prop_map(
        |(kind, output, content, text, item, items)| {
            json!({
                "type": format!("response.{kind}"), "output_index": output, "content_index": content,
                "summary_index": content, "delta": text, "part": {"type": "output_text", "text": text},
                "annotation": {"type": "url_citation", "url": text},
                "item": item, "response": {"output": items},
            })
        },
    )
}

proptest! {
    #[test]
    fn written_values_read_back(response in any_response(), size in 1..9_usize) {
        let stream = write(in_pieces(response.clone(), size));
        replay(&stream);
        let (events, end) = read(&stream, &[]);
        prop_assert_eq!(end, Ok(()));
        prop_assert!(check_grammar(&events));
        prop_assert_eq!(build_response(events), response);
    }

    #[test]
    fn a_stream_says_what_the_whole_answer_says(response in any_response(), size in 1..9_usize) {
        let whole: Value = serde_json::from_slice(&write_response(&response, &context(Request::default()))).unwrap();
        prop_assert_eq!(replay(&write(in_pieces(response.clone(), size))), whole);
        let body = write_response(&response, &context(Request::default()));
        prop_assert_eq!(read_response(&body, MODEL).unwrap(), response);
    }

    #[test]
    fn chunking_changes_nothing(sizes in prop::collection::vec(1_usize..200, 1..20)) {
        prop_assert_eq!(read(STREAM, &sizes), read(STREAM, &[]));
    }

    #[test]
    fn the_grammar_holds_whatever_comes(events in prop::collection::vec(any_event(), 0..20)) {
        let stream: String = events.into_iter().map(event).collect();
        let (events, end) = read(&stream, &[]);
        let mut whole = events.clone();
        if let Err(broken) = end {
            // A block may be open when a stream breaks. The failure ends it.
            let started = whole.iter().filter(|event| matches!(event, Event::BlockStart(_))).count();
            let stopped = whole.iter().filter(|event| **event == Event::BlockStop).count();
            whole.extend((stopped..started).map(|_| Event::BlockStop));
            if !whole.is_empty() {
                whole.push(Event::Failed(broken.into_failure()));
            }
        }
        prop_assert!(check_grammar(&whole) || whole.is_empty());
    }
}
