//! Tests that convert answers into the common form and back, whole and streamed.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use protocol::canon::{
    AnswerContext, Block, Delta, Event, Opaque, Reasoning, Request, Response, ResponseBlock,
    ResponseBuilder, Stop, carrier,
};
use protocol::messages::{Reader, Writer, read_response, write_response};
use protocol::native::UnusableAnswer;
use protocol::sse::Splitter;
use protocol::{ByteQueue, Code, Dialect, Failure, Usage};
use serde_json::Value;

pub(super) fn context() -> AnswerContext {
    AnswerContext {
        id: "msg_ours".into(),
        model: "maker/m".into(),
        created: 1_760_000_000,
        input_tokens: 42,
        request: Arc::new(Request {
            reasoning: Some(Reasoning {
                show: true,
                ..Reasoning::default()
            }),
            ..Request::default()
        }),
    }
}

/// A client that did not ask for thinking receives no thought, but a call whose id carries the thought.
#[test]
fn unrequested_thoughts_are_carried_in_the_next_call_id() {
    let opaque = Opaque {
        origin: Dialect::Interactions,
        model: "maker/m".into(),
        text: "sig".into(),
    };
    let whole_block = |kind: Block, text: &str, opaque: Option<Opaque>| ResponseBlock {
        kind,
        text: text.to_owned(),
        opaque,
        citations: Vec::new(),
        logprobs: Vec::new(),
    };
    let call = Block::ToolCall {
        id: "call_1".to_owned(),
        name: "f".to_owned(),
    };
    let response = Response {
        blocks: vec![
            whole_block(Block::Thought, "hm", Some(opaque.clone())),
            whole_block(call, "{}", None),
        ],
        stop: Stop::ToolCalls,
        usage: None,
    };
    let context = AnswerContext {
        request: Arc::new(Request::default()),
        ..context()
    };
    let whole: Value = serde_json::from_slice(&write_response(&response, &context)).unwrap();
    let mut writer = Writer::new(context);
    let mut out = ByteQueue::new();
    for event in response.into_events() {
        writer.event(event, &mut out);
    }
    let stream = String::from_utf8(out.into_bytes().to_vec()).unwrap();
    assert!(!stream.contains("thinking"), "{stream}");
    let [block] = whole["content"].as_array().unwrap().as_slice() else {
        panic!("one block: {whole}");
    };
    let id = block["id"].as_str().unwrap();
    assert!(stream.contains(id), "both say the same id");
    let (bare, carried) = carrier::decode(id);
    assert_eq!(bare, "call_1");
    assert_eq!(carried.thoughts[0].text, "hm");
    assert_eq!(carried.thoughts[0].opaque, Some(opaque));
}

/// The events of a stream, until it ends or breaks.
pub(super) fn events(stream: &str) -> (Vec<Event>, Result<(), UnusableAnswer>) {
    let mut reader = Reader::new("maker/m");
    let mut splitter = Splitter::default();
    splitter.push(Bytes::copy_from_slice(stream.as_bytes()));
    let mut events = Vec::new();
    while let Some(frame) = splitter.next_frame().unwrap() {
        if let Err(broken) = reader.frame(&frame, &mut events) {
            return (events, Err(broken));
        }
    }
    let result = reader.end(&mut events);
    (events, result)
}

pub(super) fn build_response(events: Vec<Event>) -> Response {
    let mut builder = ResponseBuilder::default();
    let mut responses = events.into_iter().filter_map(|event| builder.push(event));
    responses.next().unwrap().unwrap()
}

pub(super) fn write_stream(events: impl IntoIterator<Item = Event>) -> String {
    let mut writer = Writer::new(context());
    let mut out = ByteQueue::new();
    for event in events {
        writer.event(event, &mut out);
    }
    String::from_utf8(out.into_bytes().to_vec()).unwrap()
}

fn answers() -> Vec<(String, PathBuf)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/messages/answers");
    let files = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = files
        .map(|file| file.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), path))
        .collect();
    names.sort();
    assert!(names.len() > 5);
    names
}

#[test]
fn a_stream_and_a_whole_answer_say_the_same() {
    for (name, path) in answers() {
        let whole = std::fs::read(&path).unwrap();
        let stream = std::fs::read_to_string(path.with_extension("sse")).unwrap();
        let (events, result) = events(&stream);
        assert_eq!(result, Ok(()), "{name}");
        let read = read_response(&whole, "maker/m").unwrap();
        assert_eq!(build_response(events.clone()), read, "{name}");
        let written = write_response(&read, &context());
        let text = format!(
            "{}\n---\n{}\n---\n{}",
            describe_events(&events),
            String::from_utf8(written).unwrap(),
            write_stream(events)
        );
        insta::assert_snapshot!(name, text);
    }
}

fn event(name: &str, members: &str) -> String {
    format!("event: {name}\ndata: {{\"type\":\"{name}\"{members}}}\n\n")
}

fn start(index: u64, block: &str) -> String {
    event(
        "content_block_start",
        &format!(r#","index":{index},"content_block":{block}"#),
    )
}

fn delta(index: u64, delta: &str) -> String {
    event(
        "content_block_delta",
        &format!(r#","index":{index},"delta":{delta}"#),
    )
}

fn stop(index: u64) -> String {
    event("content_block_stop", &format!(r#","index":{index}"#))
}

fn text(index: u64, text: &str) -> String {
    delta(
        index,
        &format!(r#"{{"type":"text_delta","text":"{text}"}}"#),
    )
}

/// The events in a short notation.
fn describe_events(events: &[Event]) -> String {
    let words = events.iter().map(|event| match event {
        Event::Start => "start".to_owned(),
        Event::BlockStart(Block::Text) => "(text".to_owned(),
        Event::BlockStart(Block::Thought) => "(thought".to_owned(),
        Event::BlockStart(Block::ToolCall { name, .. }) => format!("({name}"),
        Event::BlockStart(block) => format!("({block:?}"),
        Event::Delta(Delta::Text(text) | Delta::Arguments(text)) => format!("{text:?}"),
        Event::Delta(delta) => format!("{delta:?}"),
        Event::BlockStop => ")".to_owned(),
        Event::Usage(_) => "usage".to_owned(),
        Event::Finish(stop) => format!("{stop:?}"),
        Event::Failed(failure) => failure.to_string(),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn missing_and_mixed_events_are_repaired() {
    let call = r#"{"type":"tool_use","id":"t","name":"f","input":{}}"#;
    let whole_call = r#"{"type":"tool_use","id":"t","name":"f","input":{"a":1}}"#;
    let json = |index, text: &str| {
        let text = serde_json::to_string(text).unwrap();
        delta(
            index,
            &format!(r#"{{"type":"input_json_delta","partial_json":{text}}}"#),
        )
    };
    let end = event("message_stop", "");
    for (stream, expected) in [
        (end.clone(), "start End"),
        // Without the start of the message, the start of the block, and the end of both.
        (
            text(0, "a") + &text(0, "b") + &end,
            r#"start (text "a" "b" ) End"#,
        ),
        // Blocks that overlap: the second one waits.
        (
            start(0, call)
                + &start(1, &call.replace("\"f\"", "\"g\""))
                + &json(1, "{\"b\"")
                + &json(0, "{}")
                + &json(1, ":2}")
                + &stop(1)
                + &stop(0)
                + &start(2, r#"{"type":"text","text":""}"#)
                + &text(2, "x")
                + &end,
            r#"start (f "{}" ) (g "{\"b\":2}" ) (text "x" ) ToolCalls"#,
        ),
        // Arguments in the start of the call, unless they follow in pieces.
        (
            start(0, whole_call) + &stop(0) + &end,
            r#"start (f "{\"a\":1}" ) ToolCalls"#,
        ),
        (
            start(0, whole_call) + &json(0, "{}") + &stop(0) + &end,
            r#"start (f "{}" ) ToolCalls"#,
        ),
        // Keep-alive events, end marks of other protocols, unknown events.
        (
            event("ping", "")
                + ": hm\n\n"
                + "data: [DONE]\n\n"
                + &event("new", "")
                + &end
                + "data: {",
            "start End",
        ),
        // A stop event for a block that does not exist.
        (stop(3) + &end, "start End"),
        // A signature that is sent several times. The last one that is not empty is complete.
        (
            start(0, r#"{"type":"thinking","thinking":"","signature":"a"}"#)
                + &delta(0, r#"{"type":"signature_delta","signature":"b"}"#)
                + &delta(0, r#"{"type":"signature_delta","signature":""}"#)
                + &end,
            r#"start (thought Opaque(Opaque { origin: Messages, model: "maker/m", text: "b" }) ) End"#,
        ),
    ] {
        let (events, result) = events(&stream);
        assert_eq!(result, Ok(()), "{stream}");
        assert_eq!(describe_events(&events), expected, "{stream}");
    }
}

#[test]
fn bodies_that_are_not_streams_are_errors() {
    for stream in [
        "data: {\n\n".to_owned(),
        "data: []\n\n".to_owned(),
        "data: {}\n\n".to_owned(),
        event("message_start", "") + &event("message_start", ""),
        start(0, "{}"),
        start(0, r#"{"type":"tool_use","name":"f"}"#),
        start(0, r#"{"type":"text"}"#) + &start(0, r#"{"type":"text"}"#),
        start(0, r#"{"type":"text"}"#)
            + &delta(0, r#"{"type":"input_json_delta","partial_json":"x"}"#),
        delta(0, r#"{"type":"input_json_delta","partial_json":"x"}"#),
    ] {
        let (_, result) = events(&stream);
        assert!(
            matches!(result, Err(UnusableAnswer::Malformed(_))),
            "{stream}"
        );
    }
    for (stream, code) in [
        (
            event("error", r#","error":{"type":"overloaded_error"}"#),
            Code::UpstreamOverloaded,
        ),
        ("event: error\ndata: oh\n\n".to_owned(), Code::UpstreamError),
        (
            "data: {\"type\":\"error\"}\n\n".to_owned(),
            Code::UpstreamError,
        ),
    ] {
        let (_, Err(UnusableAnswer::Failure(failure))) = events(&stream) else {
            panic!("{stream}");
        };
        assert_eq!(failure.code, code, "{stream}");
    }
    let cut = event("message_start", "") + &text(0, "a");
    assert_eq!(events(&cut).1, Err(UnusableAnswer::Unfinished));
}

#[test]
fn bodies_that_are_not_answers_are_errors() {
    for body in [
        "",
        "[]",
        "{}",
        r#"{"content":"x"}"#,
        r#"{"content":[{"text":"x"}]}"#,
    ] {
        assert!(
            matches!(
                read_response(body.as_bytes(), "m"),
                Err(UnusableAnswer::Malformed(_))
            ),
            "{body}"
        );
    }
    let error = br#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#;
    let Err(UnusableAnswer::Failure(failure)) = read_response(error, "m") else {
        panic!();
    };
    assert_eq!(failure.code, Code::UpstreamOverloaded);
}

#[test]
fn every_end_has_its_reason() {
    let mut table = String::new();
    for stop in [
        Stop::End,
        Stop::Sequence(None),
        Stop::Sequence(Some("END".to_owned())),
        Stop::Length,
        Stop::ContextFull,
        Stop::ToolCalls,
        Stop::Refusal { category: None },
        Stop::Refusal {
            category: Some("cyber".to_owned()),
        },
        Stop::Filter(Some("SAFETY".to_owned())),
        Stop::Paused,
    ] {
        let response = Response {
            blocks: Vec::new(),
            stop,
            usage: Some(Usage::default()),
        };
        let written = String::from_utf8(write_response(&response, &context())).unwrap();
        let from = written.find("\"stop_reason\"").unwrap();
        let to = written.find(",\"usage\"").unwrap();
        writeln!(table, "{:?}: {}", response.stop, &written[from..to]).unwrap();
    }
    insta::assert_snapshot!(table);
}

fn whole_block(kind: Block, text: &str, opaque: Option<Opaque>) -> ResponseBlock {
    ResponseBlock {
        kind,
        text: text.to_owned(),
        opaque,
        citations: Vec::new(),
        logprobs: Vec::new(),
    }
}

#[test]
fn answers_of_other_dialects_are_converted_to_this_one() {
    let foreign = |origin, text: &str| {
        Some(Opaque {
            origin,
            model: "maker/m".into(),
            text: text.into(),
        })
    };
    let call = |id: &str| Block::ToolCall {
        id: id.to_owned(),
        name: "f".to_owned(),
    };
    let response = Response {
        blocks: vec![
            whole_block(Block::Thought, "Hm.", foreign(Dialect::Responses, "gAAAA")),
            whole_block(Block::Thought, "Unsigned.", None),
            whole_block(Block::Thought, "", None),
            whole_block(Block::Text, "", None),
            whole_block(
                Block::Text,
                "Hi\u{2028}",
                foreign(Dialect::Generate, "lost"),
            ),
            whole_block(
                call("call.1"),
                "{\"a\": 1}",
                foreign(Dialect::Generate, "sig=="),
            ),
            whole_block(call("call_2"), "", None),
            whole_block(call("call_3"), "{\"cut", None),
            whole_block(Block::Refusal, "I cannot.", None),
            whole_block(
                Block::Image {
                    mime: "image/png".to_owned(),
                },
                "AAAA",
                None,
            ),
        ],
        stop: Stop::End,
        usage: None,
    };
    let written = String::from_utf8(write_response(&response, &context())).unwrap();
    let streamed = write_stream(response.into_events());
    insta::assert_snapshot!(format!("{written}\n---\n{streamed}"));
}

#[test]
fn a_failed_stream_ends_by_an_error_event() {
    let events = [Event::Start, Event::Failed(Failure::upstream_error())];
    let stream = write_stream(events);
    let last = stream.split("\n\n").nth(1).unwrap();
    assert!(
        last.starts_with(
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\""
        )
    );
    assert!(!stream.contains("message_stop") && !stream.contains("request_id"));
}
