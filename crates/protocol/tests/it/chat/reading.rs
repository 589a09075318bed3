//! Tests how chat answers are read into the common form.

use protocol::canon::{Block, Delta, Event, Opaque, Response, ResponseBuilder, Stop};
use protocol::native::UnusableAnswer;
use protocol::sse::Splitter;
use protocol::{Code, Dialect, Usage, chat};
use serde_json::{Value, json};

/// Events of a stream, and how it ended.
pub(crate) fn read_stream(stream: &str) -> (Vec<Event>, Result<(), UnusableAnswer>) {
    let mut splitter = Splitter::default();
    splitter.push(bytes::Bytes::copy_from_slice(stream.as_bytes()));
    let mut reader = chat::Reader::new("maker/m");
    let mut events = Vec::new();
    while let Some(frame) = splitter.next_frame().unwrap() {
        if let Err(broken) = reader.frame(&frame, &mut events) {
            return (events, Err(broken));
        }
    }
    let result = reader.end(&mut events);
    (events, result)
}

fn chunk(choice: &Value) -> String {
    let chunk = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]});
    format!("data: {chunk}\n\n")
}

pub(super) fn delta(delta: &Value) -> String {
    chunk(&json!({"index": 0, "delta": delta, "finish_reason": null}))
}

pub(super) fn finish(reason: &str) -> String {
    chunk(&json!({"index": 0, "delta": {}, "finish_reason": reason}))
}

pub(super) const DONE: &str = "data: [DONE]\n\n";

/// A stream of these deltas that ends with `stop`.
pub(super) fn stream(deltas: &[Value]) -> String {
    let deltas: String = deltas.iter().map(delta).collect();
    format!("{deltas}{}{DONE}", finish("stop"))
}

pub(super) fn build_response(events: Vec<Event>) -> Response {
    let mut builder = ResponseBuilder::default();
    let mut done = events.into_iter().filter_map(|event| builder.push(event));
    done.next().unwrap().unwrap()
}

/// A short notation of a response: `text a`, `call id name {}`.
fn shown(response: &Response) -> Vec<String> {
    let shown = response.blocks.iter().map(|block| {
        let text = &block.text;
        let signed = block.opaque.as_ref().map_or("", |_| " signed");
        match &block.kind {
            Block::Text => format!("text {text}{signed}"),
            Block::Thought => format!("thought {text}{signed}"),
            Block::Refusal => format!("refusal {text}{signed}"),
            Block::ToolCall { id, name } => format!("call {id} {name} {text}{signed}"),
            Block::Image { mime } => format!("image {mime} {text}"),
        }
    });
    shown.chain([format!("{:?}", response.stop)]).collect()
}

pub(super) fn call(index: u64, id: &str, name: &str, arguments: &str) -> Value {
    json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

pub(super) fn more(index: u64, arguments: &str) -> Value {
    json!({"index": index, "function": {"arguments": arguments}})
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn streams_become_blocks() {
    let calls = |calls: &[Value]| json!({"tool_calls": calls});
    for (name, deltas, expected) in [
        (
            "plain",
            vec![
                json!({"role": "assistant", "content": ""}),
                json!({"content": "Hel"}),
                json!({"content": "lo"}),
            ],
            &["text Hello", "End"][..],
        ),
        ("nothing", vec![json!({"role": "assistant"})], &["End"]),
        (
            "reasoning, in either name",
            vec![
                json!({"reasoning_content": "a", "reasoning": "a"}),
                json!({"reasoning": "b"}),
                json!({"content": "c", "reasoning_content": null}),
            ],
            &["thought ab", "text c", "End"],
        ),
        (
            "one delta says everything",
            vec![
                json!({"tool_calls": [call(0, "1", "f", "{}")], "content": "b", "reasoning_content": "a"}),
            ],
            &["thought a", "text b", "call 1 f {}", "ToolCalls"],
        ),
        (
            "a refusal",
            vec![json!({"refusal": "I "}), json!({"refusal": "cannot."})],
            &["refusal I cannot.", "Refusal { category: None }"],
        ),
        (
            "content as parts",
            vec![
                json!({"content": [{"type": "text", "text": "a"}, {"type": "other", "x": 1}, {"type": "text", "text": "b"}]}),
            ],
            &["text ab", "End"],
        ),
        (
            "parallel calls, one after the other",
            vec![
                calls(&[call(0, "1", "f", "")]),
                calls(&[more(0, "{\"a\":")]),
                calls(&[more(0, "\"}\"}")]),
                calls(&[call(1, "2", "g", "")]),
                calls(&[more(1, "{}")]),
            ],
            &["call 1 f {\"a\":\"}\"}", "call 2 g {}", "ToolCalls"],
        ),
        (
            "parallel calls, interleaved",
            vec![
                calls(&[call(0, "1", "f", ""), call(1, "2", "g", "")]),
                calls(&[more(1, "{\"b\"")]),
                calls(&[more(0, "{\"a\"")]),
                calls(&[more(1, ":2}"), more(0, ":1}")]),
            ],
            &["call 1 f {\"a\":1}", "call 2 g {\"b\":2}", "ToolCalls"],
        ),
        (
            "ids and names repeated",
            vec![
                calls(&[call(0, "1", "f", "{")]),
                calls(&[call(0, "1", "f", "}")]),
            ],
            &["call 1 f {}", "ToolCalls"],
        ),
        (
            "a new id in each piece",
            vec![
                calls(&[call(0, "1", "f", "{")]),
                calls(&[json!({"index": 0, "id": "9", "function": {"arguments": "}"}})]),
            ],
            &["call 1 f {}", "ToolCalls"],
        ),
        (
            "one index for all calls",
            vec![
                calls(&[call(0, "1", "f", "{}")]),
                calls(&[call(0, "2", "g", "{}")]),
            ],
            &["call 1 f {}", "call 2 g {}", "ToolCalls"],
        ),
        (
            "no index at all",
            vec![
                calls(&[json!({"id": "1", "function": {"name": "f", "arguments": "{"}})]),
                calls(&[json!({"function": {"arguments": "}"}})]),
                calls(&[json!({"id": "2", "function": {"name": "g", "arguments": "{}"}})]),
            ],
            &["call 1 f {}", "call 2 g {}", "ToolCalls"],
        ),
        (
            "no index, calls interleaved by their ids",
            vec![
                calls(&[json!({"id": "1", "function": {"name": "f", "arguments": "{\"a\""}})]),
                calls(&[json!({"id": "2", "function": {"name": "g", "arguments": "{\"b\""}})]),
                calls(&[json!({"id": "1", "function": {"arguments": ":1}"}})]),
                calls(&[json!({"id": "2", "function": {"arguments": ":2}"}})]),
            ],
            &["call 1 f {\"a\":1}", "call 2 g {\"b\":2}", "ToolCalls"],
        ),
        (
            "no index and no ids, calls one after another",
            vec![calls(&[
                json!({"function": {"name": "f", "arguments": "{\"a\":1}"}}),
                json!({"function": {"name": "f", "arguments": "{\"a\":2}"}}),
            ])],
            &[
                "call call_69d2d2714bb94ab1_0 f {\"a\":1}",
                "call call_69d2d2714bb94ab1_1 f {\"a\":2}",
                "ToolCalls",
            ],
        ),
        (
            "the name comes late",
            vec![
                calls(&[json!({"index": 0, "id": "1"})]),
                calls(&[json!({"index": 0, "function": {"name": "f"}})]),
                calls(&[more(0, "{}")]),
            ],
            &["call 1 f {}", "ToolCalls"],
        ),
        (
            "arguments as an object",
            vec![calls(&[
                json!({"index": 0, "id": "1", "function": {"name": "f", "arguments": {"a": [1, 2]}}}),
            ])],
            &["call 1 f {\"a\":[1,2]}", "ToolCalls"],
        ),
        (
            "the older form",
            vec![
                json!({"function_call": {"name": "f", "arguments": ""}}),
                json!({"function_call": {"arguments": "{}"}, "content": null}),
            ],
            &["call call_69d2d2714bb94ab1_0 f {}", "ToolCalls"],
        ),
        (
            "text behind and between calls",
            vec![
                calls(&[call(0, "1", "f", "{}")]),
                json!({"content": "so"}),
                calls(&[call(1, "2", "g", "{")]),
                json!({"content": "oh"}),
                calls(&[more(1, "}")]),
            ],
            &[
                "call 1 f {}",
                "text so",
                "call 2 g {}",
                "text oh",
                "ToolCalls",
            ],
        ),
        (
            "a signature",
            vec![
                calls(&[
                    json!({"index": 0, "id": "1", "function": {"name": "f", "arguments": "{}"},
                    "extra_content": {"google": {"thought_signature": "sig"}}}),
                ]),
                calls(&[
                    json!({"index": 0, "extra_content": {"google": {"thought_signature": "sig"}}}),
                ]),
            ],
            &["call 1 f {} signed", "ToolCalls"],
        ),
        (
            "white space behind a call",
            vec![
                calls(&[call(0, "1", "f", "{}")]),
                calls(&[call(1, "2", "g", "{}")]),
                calls(&[more(0, " \n")]),
            ],
            &["call 1 f {}", "call 2 g {}", "ToolCalls"],
        ),
    ] {
        let (events, result) = read_stream(&stream(&deltas));
        assert_eq!(result, Ok(()), "{name}");
        assert_eq!(shown(&build_response(events)), expected, "{name}");
    }
}

#[test]
fn the_first_call_and_each_that_is_due_go_on_at_once() {
    let (events, _) = read_stream(
        &[
            delta(&json!({"tool_calls": [call(0, "1", "f", "")]})),
            delta(&json!({"tool_calls": [call(1, "2", "g", "{\"b\"")]})),
            delta(&json!({"tool_calls": [more(0, "{}")]})),
        ]
        .concat(),
    );
    // The first call is complete, so the second one follows, although the stream has not ended.
    let arguments = |text: &str| Event::Delta(Delta::Arguments(text.to_owned()));
    let start = |id: &str, name: &str| {
        Event::BlockStart(Block::ToolCall {
            id: id.to_owned(),
            name: name.to_owned(),
        })
    };
    assert_eq!(
        events,
        [
            Event::Start,
            start("1", "f"),
            arguments("{}"),
            Event::BlockStop,
            start("2", "g"),
            arguments("{\"b\""),
        ]
    );
}

#[test]
fn a_piece_of_a_call_that_is_over_breaks_the_stream() {
    let late = [
        delta(&json!({"tool_calls": [call(0, "1", "f", "{}")]})),
        delta(&json!({"content": "x"})),
        delta(&json!({"tool_calls": [more(0, "{}")]})),
    ];
    let nameless = [
        delta(&json!({"tool_calls": [more(0, "{}")]})),
        finish("tool_calls"),
    ];
    for stream in [late.concat(), nameless.concat()] {
        let (_, result) = read_stream(&stream);
        assert!(
            matches!(result, Err(UnusableAnswer::Malformed(_))),
            "{result:?}"
        );
    }
}

#[test]
fn finish_reasons_are_understood() {
    for (reason, stop) in [
        (Some("stop"), Stop::End),
        (Some("length"), Stop::Length),
        (Some("content_filter"), Stop::Filter(None)),
        (Some("tool_calls"), Stop::ToolCalls),
        (Some("function_call"), Stop::ToolCalls),
        (Some("something_new"), Stop::End),
        (None, Stop::End),
    ] {
        let text = delta(&json!({"content": "a"}));
        let end = reason.map(finish).unwrap_or_default();
        let (events, result) = read_stream(&format!("{text}{end}{DONE}"));
        assert_eq!(result, Ok(()));
        assert_eq!(build_response(events).stop, stop, "{reason:?}");
    }
    for (reason, code) in [
        ("error", Code::UpstreamError),
        ("insufficient_system_resource", Code::UpstreamOverloaded),
    ] {
        let (_, result) = read_stream(&finish(reason));
        assert!(matches!(result, Err(UnusableAnswer::Failure(failure)) if failure.code == code));
    }
}

#[test]
fn usage_comes_between_blocks_and_the_last_report_counts() {
    let with_usage = |choices: Value, output: u64| {
        let usage = json!({"prompt_tokens": 9, "completion_tokens": output, "total_tokens": 9 + output,
            "prompt_tokens_details": {"cached_tokens": 4}});
        format!("data: {}\n\n", json!({"choices": choices, "usage": usage}))
    };
    let text = json!([{"index": 0, "delta": {"content": "a"}}]);
    let stream = [
        with_usage(text.clone(), 1),
        with_usage(text, 2),
        finish("stop"),
        with_usage(json!([]), 3),
        DONE.to_owned(),
    ];
    let (events, result) = read_stream(&stream.concat());
    assert_eq!(result, Ok(()));
    let usage = |output| {
        Event::Usage(Usage {
            input: 5,
            cached_input: 4,
            output,
            ..Usage::default()
        })
    };
    let text = || Event::Delta(Delta::Text("a".to_owned()));
    assert_eq!(
        events,
        [
            Event::Start,
            Event::BlockStart(Block::Text),
            text(),
            text(),
            Event::BlockStop,
            usage(2),
            usage(3),
            Event::Finish(Stop::End),
        ]
    );
}

#[test]
fn sources_count_from_the_start_of_their_text() {
    let source = json!({"type": "url_citation", "url_citation":
        {"url": "https://a", "title": "A", "start_index": 5, "end_index": 7}});
    let deltas = [
        json!({"content": "äbc"}),
        json!({"tool_calls": [call(0, "1", "f", "{}")]}),
        json!({"content": "defg"}),
        json!({"annotations": [source, {"type": "other"}]}),
    ];
    let (events, _) = read_stream(&stream(&deltas));
    let response = build_response(events);
    let sources: Vec<_> = response
        .blocks
        .iter()
        .map(|block| block.citations.len())
        .collect();
    assert_eq!(sources, [0, 0, 1]);
    let expected = ("https://a".to_owned(), "A".to_owned(), 2, 4);
    assert_eq!(response.blocks[2].citations, [expected]);
}

#[test]
fn a_stream_without_its_end_is_broken() {
    let text = delta(&json!({"content": "a"}));
    for stream in [
        String::new(),
        text.clone(),
        format!("{text}{}", finish("stop")),
    ] {
        let (_, result) = read_stream(&stream);
        assert_eq!(result, Err(UnusableAnswer::Unfinished), "{stream}");
    }
    // An end mark alone is not an answer.
    for stream in [
        DONE.to_owned(),
        format!("data: {{\"choices\":[]}}\n\n{DONE}"),
    ] {
        let (events, result) = read_stream(&stream);
        assert!(
            matches!(result, Err(UnusableAnswer::Malformed(_))),
            "{result:?}"
        );
        assert!(events.is_empty());
    }
}

#[test]
fn errors_in_a_stream_are_failures() {
    for error in [
        "data: {\"error\":{\"message\":\"x\",\"code\":429}}\n\n",
        "event: error\ndata: {\"message\":\"x\",\"code\":429}\n\n",
        "data: {\"object\":\"error\",\"message\":\"x\",\"code\":429}\n\n",
    ] {
        let text = delta(&json!({"content": "a"}));
        let (events, result) = read_stream(&format!("{text}{error}"));
        assert_eq!(events.len(), 3);
        let Err(UnusableAnswer::Failure(failure)) = result else {
            panic!("{result:?}");
        };
        assert_eq!(failure.code, Code::UpstreamOverloaded, "{error}");
    }
    for garbage in [
        "data: {}\n\n",
        "data: []\n\n",
        "data: {\"choices\":1}\n\n",
        "data: x\n\n",
    ] {
        let (_, result) = read_stream(garbage);
        assert!(
            matches!(result, Err(UnusableAnswer::Malformed(_))),
            "{garbage}"
        );
    }
    // A member that says that there is no error is not an error.
    let fine = "data: {\"error\":null,\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    let (events, _) = read_stream(fine);
    assert_eq!(events.len(), 3);
}

#[test]
fn whole_answers_become_blocks() {
    let body = json!({
        "id": "chatcmpl-1", "choices": [
            {"index": 1, "message": {"content": "other"}, "finish_reason": "stop"},
            {"index": 0, "message": {"role": "assistant", "content": "b", "reasoning_content": "a", "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"},
                 "extra_content": {"google": {"thought_signature": "sig"}}}]}, "finish_reason": null}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
    });
    let response = chat::read_response(body.to_string().as_bytes(), "maker/m").unwrap();
    assert_eq!(
        shown(&response),
        ["thought a", "text b", "call 1 f {} signed", "ToolCalls"]
    );
    assert_eq!(response.usage.unwrap().output, 2);
    let signature = Opaque {
        origin: Dialect::Chat,
        model: "maker/m".into(),
        text: "sig".into(),
    };
    assert_eq!(response.blocks[2].opaque, Some(signature));
    for broken in [
        "{}",
        "{\"choices\":[]}",
        "{\"error\":\"x\"}",
        "",
        "[]",
        "{\"object\":\"error\"}",
    ] {
        assert!(
            chat::read_response(broken.as_bytes(), "maker/m").is_err(),
            "{broken}"
        );
    }
}
