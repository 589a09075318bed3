//! Chat answers read into the common form.

use proptest::prelude::*;
use protocol::canon::{Block, Delta, Event, Fold, Opaque, Response, Stop};
use protocol::native::Broken;
use protocol::sse::Splitter;
use protocol::{Code, Dialect, Usage, chat};
use serde_json::{Value, json};

/// Events of a stream, and how it ended.
pub(crate) fn read_stream(stream: &str) -> (Vec<Event>, Result<(), Broken>) {
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

fn delta(delta: &Value) -> String {
    chunk(&json!({"index": 0, "delta": delta, "finish_reason": null}))
}

fn finish(reason: &str) -> String {
    chunk(&json!({"index": 0, "delta": {}, "finish_reason": reason}))
}

const DONE: &str = "data: [DONE]\n\n";

/// A stream of these deltas that stops.
fn stream(deltas: &[Value]) -> String {
    let deltas: String = deltas.iter().map(delta).collect();
    format!("{deltas}{}{DONE}", finish("stop"))
}

fn fold(events: Vec<Event>) -> Response {
    let mut fold = Fold::default();
    let mut done = events.into_iter().filter_map(|event| fold.push(event));
    done.next().unwrap().unwrap()
}

/// A few words for a response: `text "a"`, `call id name {}`.
fn shown(response: &Response) -> Vec<String> {
    let shown = response.blocks.iter().map(|folded| {
        let text = &folded.text;
        let signed = folded.opaque.as_ref().map_or("", |_| " signed");
        match &folded.block {
            Block::Text => format!("text {text}{signed}"),
            Block::Thought => format!("thought {text}{signed}"),
            Block::Refusal => format!("refusal {text}{signed}"),
            Block::ToolCall { id, name } => format!("call {id} {name} {text}{signed}"),
            Block::Image { mime } => format!("image {mime} {text}"),
        }
    });
    shown.chain([format!("{:?}", response.stop)]).collect()
}

fn call(index: u64, id: &str, name: &str, arguments: &str) -> Value {
    json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

fn more(index: u64, arguments: &str) -> Value {
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
        assert_eq!(shown(&fold(events)), expected, "{name}");
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
    // The first is whole and makes way for the second, though the stream has not ended.
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
        assert!(matches!(result, Err(Broken::Malformed(_))), "{result:?}");
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
        assert_eq!(fold(events).stop, stop, "{reason:?}");
    }
    for (reason, code) in [
        ("error", Code::UpstreamError),
        ("insufficient_system_resource", Code::UpstreamOverloaded),
    ] {
        let (_, result) = read_stream(&finish(reason));
        assert!(matches!(result, Err(Broken::Failure(failure)) if failure.code == code));
    }
}

#[test]
fn usage_is_told_outside_of_blocks_and_the_last_report_counts() {
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
    let response = fold(events);
    let sources: Vec<_> = response
        .blocks
        .iter()
        .map(|folded| folded.citations.len())
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
        assert_eq!(result, Err(Broken::Unfinished), "{stream}");
    }
    // An end mark is no answer by itself.
    for stream in [
        DONE.to_owned(),
        format!("data: {{\"choices\":[]}}\n\n{DONE}"),
    ] {
        let (events, result) = read_stream(&stream);
        assert!(matches!(result, Err(Broken::Malformed(_))), "{result:?}");
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
        let Err(Broken::Failure(failure)) = result else {
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
        assert!(matches!(result, Err(Broken::Malformed(_))), "{garbage}");
    }
    // Members that say that there is no error are none.
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

/// A message of any members, and the number of pieces that each is cut into.
fn any_message() -> impl Strategy<Value = (Value, Vec<usize>)> {
    let text = || proptest::option::of("[a-zé\"\\\\{} ]{0,12}");
    let call = ("[a-z]{1,4}", "\\{(\"[a-z\\\\\\\\]{0,3}\":\\{\\})?\\}");
    let calls = prop::collection::vec(call, 0..4);
    let cuts = prop::collection::vec(1_usize..5, 1..8);
    (text(), text(), text(), calls, cuts).prop_map(|(content, thought, refusal, calls, cuts)| {
        let calls: Vec<_> = calls
            .iter()
            .enumerate()
            .map(|(at, (name, arguments))| {
                json!({"id": format!("call_{at}"), "type": "function",
                    "function": {"name": name, "arguments": arguments}})
            })
            .collect();
        let message = json!({"role": "assistant", "content": content, "reasoning_content": thought,
            "refusal": refusal, "tool_calls": calls});
        (message, cuts)
    })
}

/// The deltas that add up to a message, calls interleaved.
fn deltas(message: &Value, cuts: &[usize]) -> Vec<Value> {
    let mut cuts = cuts.iter().copied().cycle();
    let mut pieces = |text: &str| -> Vec<String> {
        let chars: Vec<char> = text.chars().collect();
        let size = cuts.next().unwrap_or(1);
        chars
            .chunks(size)
            .map(|piece| piece.iter().collect())
            .collect()
    };
    let mut deltas = Vec::new();
    for member in ["reasoning_content", "content", "refusal"] {
        let text = message[member].as_str().unwrap_or_default();
        deltas.extend(pieces(text).into_iter().map(|piece| json!({member: piece})));
    }
    let mut waiting = Vec::new();
    for (at, call) in message["tool_calls"].as_array().unwrap().iter().enumerate() {
        let mut head = call.clone();
        head["index"] = at.into();
        head["function"]["arguments"] = "".into();
        deltas.push(json!({"tool_calls": [head]}));
        waiting.push(pieces(call["function"]["arguments"].as_str().unwrap()).into_iter());
    }
    while waiting.iter().any(|pieces| pieces.len() > 0) {
        for (at, pieces) in waiting.iter_mut().enumerate() {
            let piece = pieces.next().map(|piece| more(at as u64, &piece));
            deltas.extend(piece.map(|piece| json!({"tool_calls": [piece]})));
        }
    }
    deltas
}

proptest! {
    #[test]
    fn folding_a_stream_gives_the_whole_answer((message, cuts) in any_message()) {
        let body = json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]});
        let whole = chat::read_response(body.to_string().as_bytes(), "maker/m").unwrap();
        let stream = stream(&deltas(&message, &cuts));
        let (events, result) = read_stream(&stream);
        prop_assert_eq!(result, Ok(()));
        prop_assert_eq!(fold(events), whole);
    }

    /// Whatever comes, blocks are not nested and nothing stands outside of them.
    #[test]
    fn any_stream_gives_events_by_the_grammar(stream in any_stream()) {
        let (events, result) = read_stream(&stream);
        let mut open = false;
        for (at, event) in events.iter().enumerate() {
            match event {
                Event::Start => prop_assert_eq!(at, 0),
                Event::BlockStart(_) => prop_assert!(!std::mem::replace(&mut open, true)),
                Event::BlockStop => prop_assert!(std::mem::take(&mut open)),
                Event::Delta(_) => prop_assert!(open),
                Event::Usage(_) => prop_assert!(!open),
                Event::Finish(_) => {
                    prop_assert!(!open);
                    prop_assert_eq!(at + 1, events.len());
                }
                Event::Failed(_) => prop_assert!(false, "failures are returned"),
            }
            prop_assert!(at > 0 || *event == Event::Start);
        }
        let finished = matches!(events.last(), Some(Event::Finish(_)));
        prop_assert_eq!(finished, result.is_ok());
    }
}

fn any_stream() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just(delta(&json!({"content": "a"}))),
        Just(delta(&json!({"reasoning_content": "b"}))),
        Just(delta(&json!({"refusal": "c"}))),
        Just(delta(
            &json!({"annotations": [{"url_citation": {"url": "u"}}]})
        )),
        (0_u64..3, 0_u64..3, "[fg]?", "[{}x]{0,2}").prop_map(|(index, id, name, arguments)| {
            delta(&json!({"tool_calls": [call(index, &id.to_string(), &name, &arguments)]}))
        }),
        (0_u64..3, "[{}]{0,2}").prop_map(|(index, arguments)| {
            delta(&json!({"tool_calls": [more(index, &arguments)]}))
        }),
        Just(delta(
            &json!({"function_call": {"name": "h", "arguments": "{"}})
        )),
        Just(
            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\n"
                .to_owned()
        ),
        Just(finish("stop")),
        Just(": keep-alive\n\n".to_owned()),
        Just(DONE.to_owned()),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}
