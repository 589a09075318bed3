//! Tests how chat answers are written from the common form.

use std::sync::Arc;

use proptest::prelude::*;
use protocol::canon::{
    AnswerContext, Block, Delta, Event, Opaque, Request, Response, ResponseBlock, ResponseBuilder,
    Stop, carrier,
};
use protocol::{ByteQueue, Dialect, Failure, Usage, chat};
use serde_json::{Value, json};

use super::reading::read_stream;

fn context(include_usage: bool) -> AnswerContext {
    AnswerContext {
        id: "chatcmpl_1".into(),
        model: "maker/m".into(),
        created: 1_760_000_000,
        input_tokens: 7,
        request: Arc::new(Request {
            include_usage,
            ..Request::default()
        }),
    }
}

fn write(events: impl IntoIterator<Item = Event>, include_usage: bool) -> String {
    let mut writer = chat::Writer::new(context(include_usage));
    let mut out = ByteQueue::new();
    for event in events {
        writer.event(event, &mut out);
    }
    String::from_utf8(out.into_bytes().to_vec()).unwrap()
}

/// The deltas of a stream. Checks the rest of the stream on the way.
fn deltas(stream: &str) -> Vec<Value> {
    let mut deltas = Vec::new();
    for event in stream.split_terminator("\n\n") {
        let data = event.strip_prefix("data: ").unwrap();
        if data == "[DONE]" {
            continue;
        }
        let mut chunk: Value = serde_json::from_str(data).unwrap();
        assert_eq!(chunk["id"], "chatcmpl_1");
        assert_eq!(chunk["model"], "maker/m");
        assert_eq!(chunk["object"], "chat.completion.chunk");
        deltas.push(chunk["choices"][0]["delta"].take());
    }
    deltas
}

fn usage() -> Usage {
    Usage {
        input: 5,
        cached_input: 4,
        output: 7,
        reasoning: 2,
        ..Usage::default()
    }
}

fn text(text: &str) -> Event {
    Event::Delta(Delta::Text(text.to_owned()))
}

fn arguments(text: &str) -> Event {
    Event::Delta(Delta::Arguments(text.to_owned()))
}

fn call(id: &str, name: &str) -> Event {
    Event::BlockStart(Block::ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
    })
}

fn opaque(origin: Dialect, text: &str) -> Opaque {
    Opaque {
        origin,
        model: "maker/m".into(),
        text: text.into(),
    }
}

fn signed(origin: Dialect, text: &str) -> Event {
    Event::Delta(Delta::Opaque(opaque(origin, text)))
}

fn events_of_every_kind() -> Vec<Event> {
    let source = |start, end| {
        Event::Delta(Delta::Citation {
            url: "https://a".to_owned(),
            title: "A".to_owned(),
            start,
            end,
        })
    };
    vec![
        Event::Start,
        Event::BlockStart(Block::Thought),
        text("Hm\u{2028}"),
        Event::BlockStop,
        Event::BlockStart(Block::Text),
        text("Hi"),
        text(" there"),
        source(0, 2),
        Event::BlockStop,
        call("call_a", "f"),
        arguments("{\"x\""),
        arguments(":1}"),
        Event::BlockStop,
        call("call_b", "g"),
        Event::BlockStop,
        Event::BlockStart(Block::Text),
        text("!"),
        source(0, 1),
        Event::BlockStop,
        Event::Usage(usage()),
        Event::Finish(Stop::ToolCalls),
    ]
}

#[test]
fn a_stream_is_what_accumulators_want() {
    insta::assert_snapshot!(write(events_of_every_kind(), true));
}

#[test]
fn usage_is_sent_only_on_request() {
    let asked = write(events_of_every_kind(), true);
    let unasked = write(events_of_every_kind(), false);
    assert!(asked.contains("\"usage\":{") && !unasked.contains("usage"));
    assert!(unasked.ends_with("data: [DONE]\n\n"));
}

#[test]
fn a_whole_answer_is_the_fold_of_its_stream() {
    let mut builder = ResponseBuilder::default();
    let mut responses = events_of_every_kind()
        .into_iter()
        .filter_map(|event| builder.push(event));
    let response = responses.next().unwrap().unwrap();
    let body = chat::write_response(&response, &context(false));
    let body: Value = serde_json::from_slice(&body).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&body).unwrap());
}

#[test]
fn an_answer_of_nothing_has_empty_content() {
    let empty = Response {
        blocks: Vec::new(),
        stop: Stop::End,
        usage: None,
    };
    let body: Value =
        serde_json::from_slice(&chat::write_response(&empty, &context(false))).unwrap();
    let message = &body["choices"][0]["message"];
    assert_eq!(
        message,
        &json!({"role": "assistant", "content": "", "refusal": null})
    );
    assert!(body.get("usage").is_none());
}

#[test]
fn stops_become_finish_reasons_of_chat() {
    let refusal = || Stop::Refusal { category: None };
    for (refused, stop, reason) in [
        (false, Stop::End, "stop"),
        (false, Stop::Sequence(Some("END".to_owned())), "stop"),
        (false, Stop::Paused, "stop"),
        (false, Stop::Length, "length"),
        (false, Stop::ContextFull, "length"),
        (false, Stop::ToolCalls, "tool_calls"),
        (false, Stop::Filter(None), "content_filter"),
        (false, refusal(), "content_filter"),
        (true, refusal(), "stop"),
    ] {
        let mut events = vec![Event::Start];
        if refused {
            events.extend([
                Event::BlockStart(Block::Refusal),
                text("No."),
                Event::BlockStop,
            ]);
        }
        events.push(Event::Finish(stop.clone()));
        let stream = write(events, false);
        assert!(stream.contains(&format!("\"delta\":{{}},\"finish_reason\":\"{reason}\"")));
        assert_eq!(stream.contains("\"refusal\":\"No.\""), refused);
        let blocks = refused.then(|| ResponseBlock {
            kind: Block::Refusal,
            text: "No.".to_owned(),
            opaque: None,
            citations: Vec::new(),
            logprobs: Vec::new(),
        });
        let response = Response {
            blocks: blocks.into_iter().collect(),
            stop,
            usage: None,
        };
        let body = chat::write_response(&response, &context(false));
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["choices"][0]["finish_reason"], reason);
    }
}

/// The data that an id carries: thoughts as text and value, and the value of the signature.
type CarriedCall = (String, Vec<(String, String)>, Option<String>);

fn carried(stream: &str) -> Vec<CarriedCall> {
    let deltas = deltas(stream);
    let ids = deltas
        .iter()
        .filter_map(|delta| delta["tool_calls"][0]["id"].as_str());
    ids.map(|id| {
        let (id, carried) = carrier::decode(id);
        let thoughts = carried.thoughts.into_iter().map(|thought| {
            let value = thought.opaque.unwrap().text;
            (thought.text, value.into_string())
        });
        let signature = carried.opaque.map(|opaque| opaque.text.into_string());
        (id.to_owned(), thoughts.collect(), signature)
    })
    .collect()
}

#[test]
fn opaque_data_travels_in_the_id_of_the_next_call() {
    let thought = |text: &str, origin, value: &str| {
        let words = Event::Delta(Delta::Text(text.to_owned()));
        [
            Event::BlockStart(Block::Thought),
            words,
            signed(origin, value),
            Event::BlockStop,
        ]
    };
    let bare = |id: &str| [call(id, "f"), arguments("{}"), Event::BlockStop];
    let mut events = vec![Event::Start];
    events.extend(thought("because", Dialect::Messages, "M"));
    events.extend(thought("in short", Dialect::Responses, "R"));
    events.extend(bare("call_a"));
    events.extend(bare("call_b"));
    events.extend([
        call("call_c", "f"),
        signed(Dialect::Generate, "G"),
        arguments("{}"),
    ]);
    events.extend([Event::BlockStop, Event::Finish(Stop::ToolCalls)]);
    let stream = write(events.clone(), false);
    let owned = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        let pairs = pairs.iter();
        pairs
            .map(|(text, value)| ((*text).to_owned(), (*value).to_owned()))
            .collect()
    };
    // Only a signature of Messages covers the text of the thought.
    let expected = [
        (
            "call_a".to_owned(),
            owned(&[("because", "M"), ("", "R")]),
            None,
        ),
        ("call_b".to_owned(), Vec::new(), None),
        ("call_c".to_owned(), Vec::new(), Some("G".to_owned())),
    ];
    assert_eq!(carried(&stream), expected);
    // The extension contains the thought signature too, marked as ours.
    let deltas = deltas(&stream);
    let signatures: Vec<_> = deltas
        .iter()
        .filter_map(|delta| {
            let extra = &delta["tool_calls"][0]["extra_content"];
            Opaque::unwrap(extra["google"]["thought_signature"].as_str()?)
        })
        .collect();
    assert_eq!(signatures, [opaque(Dialect::Generate, "G")]);

    // Whole answers have the same ids.
    let mut builder = ResponseBuilder::default();
    let mut responses = events.into_iter().filter_map(|event| builder.push(event));
    let response = responses.next().unwrap().unwrap();
    let body = chat::write_response(&response, &context(false));
    let body: Value = serde_json::from_slice(&body).unwrap();
    let calls = body["choices"][0]["message"]["tool_calls"]
        .as_array()
        .unwrap();
    let whole: Vec<_> = calls
        .iter()
        .map(|call| call["id"].as_str().unwrap())
        .collect();
    let streamed: Vec<_> = deltas
        .iter()
        .filter_map(|delta| delta["tool_calls"][0]["id"].as_str())
        .collect();
    assert_eq!(whole, streamed);
}

#[test]
fn a_signature_that_comes_late_has_the_extension() {
    let events = [
        Event::Start,
        call("call_a", "f"),
        arguments("{}"),
        signed(Dialect::Interactions, "I"),
        Event::BlockStop,
    ];
    let deltas = deltas(&write(events, false));
    let signature = opaque(Dialect::Interactions, "I").wrap();
    let extra = json!({"index": 0, "extra_content": {"google": {"thought_signature": signature}}});
    assert_eq!(deltas.last().unwrap()["tool_calls"][0], extra);
}

#[test]
fn a_failure_ends_the_stream_without_an_end_mark() {
    let events = [Event::Start, Event::Failed(Failure::upstream_error())];
    let stream = write(events, true);
    assert!(stream.contains("data: {\"error\":{"));
    assert!(!stream.contains("[DONE]") && !stream.contains("\"finish_reason\":\""));
}

/// Events that chat can express: adjacent blocks differ in kind, except calls, and texts are not empty.
fn any_events() -> impl Strategy<Value = Vec<Event>> {
    let words = |block: Block| {
        prop::collection::vec("[a-z\u{2028}\"\\\\é]{1,5}", 1..4).prop_map(move |pieces| {
            let deltas = pieces.iter().map(|piece| text(piece));
            let start = [Event::BlockStart(block.clone())];
            start
                .into_iter()
                .chain(deltas)
                .chain([Event::BlockStop])
                .collect::<Vec<_>>()
        })
    };
    let tool = (
        "[a-z]{1,5}",
        "\\{(\"[a-z]{0,3}\":\"\\{?\\}?\")?\\}",
        1_usize..9,
    );
    let tool = tool.prop_map(|(name, whole, size)| {
        let chars: Vec<char> = whole.chars().collect();
        let pieces = chars
            .chunks(size)
            .map(|piece| arguments(&piece.iter().collect::<String>()));
        let start = [call("call_x", &name)];
        start
            .into_iter()
            .chain(pieces)
            .chain([Event::BlockStop])
            .collect::<Vec<_>>()
    });
    let block = prop_oneof![
        words(Block::Text),
        words(Block::Thought),
        words(Block::Refusal),
        tool
    ];
    (prop::collection::vec(block, 0..6), any::<bool>()).prop_map(|(mut blocks, length)| {
        blocks.dedup_by(|one, other| {
            let is_call = matches!(one[0], Event::BlockStart(Block::ToolCall { .. }));
            !is_call && one[0] == other[0]
        });
        let mut calls = 0;
        for block in &mut blocks {
            if let Event::BlockStart(Block::ToolCall { id, .. }) = &mut block[0] {
                *id = format!("call_{calls}");
                calls += 1;
            }
        }
        let refused = blocks
            .iter()
            .any(|block| block[0] == Event::BlockStart(Block::Refusal));
        let stop = match (length, calls, refused) {
            (true, ..) => Stop::Length,
            (_, 1.., _) => Stop::ToolCalls,
            (_, _, true) => Stop::Refusal { category: None },
            _ => Stop::End,
        };
        let mut events = vec![Event::Start];
        events.extend(blocks.into_iter().flatten());
        events.extend([Event::Usage(usage()), Event::Finish(stop)]);
        events
    })
}

proptest! {
    #[test]
    fn written_values_read_back(events in any_events()) {
        let stream = write(events.clone(), true);
        let (read, result) = read_stream(&stream);
        prop_assert_eq!(result, Ok(()));
        prop_assert_eq!(read, events);
    }
}
