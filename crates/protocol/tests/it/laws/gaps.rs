//! Streams that leave out what their upstream could have said: indexes, numbers and names.

use bytes::Bytes;
use proptest::prelude::*;
use protocol::canon::Event;
use protocol::native::{Rewriter, rewrite_answer};
use protocol::{ByteQueue, Dialect};
use serde_json::{Value, json};

use super::streams::{any_answer, identity, relay};
use super::{MODEL, echo, upstream_stream};
use crate::grammar::{self, Heard};

/// What an upstream leaves out, and what it tells late.
#[derive(Debug, Clone)]
struct Gaps {
    /// The name of an event is told in one place as a rule, and some tell it in the other.
    names: Names,
    /// Members that no event has.
    dropped: Vec<&'static str>,
    /// What stands in their place, if they are there but of another type.
    wrong: Option<Value>,
    /// The events that end an item come at the end of the stream, in an order that this decides.
    late: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Names {
    Both,
    Data,
    Events,
}

/// The members that an upstream of this dialect may leave out.
fn droppable(dialect: Dialect) -> Vec<&'static str> {
    match dialect {
        Dialect::Responses => vec![
            "sequence_number",
            "output_index",
            "item_id",
            "content_index",
            "summary_index",
            "logprobs",
        ],
        Dialect::Chat | Dialect::Messages | Dialect::Generate | Dialect::Interactions => {
            vec!["index"]
        }
    }
}

fn any_gaps(dialect: Dialect) -> impl Strategy<Value = Gaps> {
    let members = droppable(dialect);
    let names = prop::sample::select(vec![Names::Both, Names::Data, Names::Events]);
    let dropped = prop::sample::subsequence(members.clone(), 0..=members.len());
    (names, dropped, prop::option::of(any::<u64>())).prop_map(move |(names, dropped, late)| {
        let names = match dialect {
            Dialect::Chat | Dialect::Generate => Names::Both,
            _ => names,
        };
        // Nobody knows what a late end is about that names nothing.
        let nameless = ["output_index", "item_id"];
        let nameless = nameless.iter().all(|name| dropped.contains(name));
        let late = late.filter(|_| !nameless);
        Gaps {
            names,
            dropped,
            wrong: None,
            late,
        }
    })
}

/// Whether an event says that an item has ended.
fn is_end(kind: &str) -> bool {
    let responses = kind.strip_prefix("response.");
    let is_done = responses.is_some_and(|rest| rest.rsplit('.').next() == Some("done"));
    is_done || kind == "content_block_stop" || kind == "step.stop"
}

/// Whether an event says that all items have ended.
fn is_last(kind: &str) -> bool {
    let last = ["response.completed", "response.incomplete"];
    last.contains(&kind) || kind == "message_delta" || kind == "interaction.completed"
}

fn drop_members(value: &mut Value, dropped: &[&str], wrong: Option<&Value>) {
    match value {
        Value::Object(members) => {
            if let Some(wrong) = wrong {
                let found = members.iter_mut();
                for (_, value) in found.filter(|(name, _)| dropped.contains(&name.as_str())) {
                    *value = wrong.clone();
                }
            } else {
                members.retain(|name, _| !dropped.contains(&name.as_str()));
            }
            for value in members.values_mut() {
                drop_members(value, dropped, wrong);
            }
        }
        Value::Array(items) => {
            for item in items {
                drop_members(item, dropped, wrong);
            }
        }
        _ => {}
    }
}

/// The stream as an upstream with these gaps would have sent it.
fn with_gaps(stream: &[u8], gaps: &Gaps) -> String {
    let stream = std::str::from_utf8(stream).unwrap();
    let (mut frames, mut ends) = (Vec::new(), Vec::new());
    for (number, frame) in (1_u64..).zip(stream.split_terminator("\n\n")) {
        let (name, data) = frame.split_once("data: ").unwrap();
        let Ok(mut value) = serde_json::from_str::<Value>(data) else {
            frames.push(format!("{frame}\n\n"));
            continue;
        };
        let kind = value.get("type").or_else(|| value.get("event_type"));
        let kind = kind.and_then(Value::as_str).unwrap_or_default().to_owned();
        drop_members(&mut value, &gaps.dropped, gaps.wrong.as_ref());
        if let (Names::Events, Value::Object(members)) = (gaps.names, &mut value) {
            members.retain(|name, _| name != "type" && name != "event_type");
        }
        let name = if gaps.names == Names::Data { "" } else { name };
        let frame = format!("{name}data: {value}\n\n");
        match gaps.late {
            Some(seed) if is_end(&kind) => {
                let place = seed.wrapping_mul(number).rotate_left(17);
                ends.push((place, frame));
            }
            _ => {
                if is_last(&kind) {
                    ends.sort_by_key(|(place, _)| *place);
                    frames.extend(ends.drain(..).map(|(_, frame)| frame));
                }
                frames.push(frame);
            }
        }
    }
    assert!(ends.is_empty(), "{stream}");
    frames.concat()
}

fn heard(from: Dialect, to: Dialect, stream: &str) -> Result<Heard, String> {
    let relayed = relay(from, to, stream.as_bytes(), &[]);
    relayed
        .result
        .map_err(|broken| format!("{broken}\n{stream}"))?;
    grammar::hear(to, &relayed.text)
}

/// A signature that comes after the call behind it has begun is too late for the id of that call.
fn without_signatures(mut heard: Heard) -> Heard {
    heard.opaque.clear();
    for call in &mut heard.calls {
        if let Some((id, _)) = call.id.split_once("_gw1_") {
            call.id = id.to_owned();
        }
    }
    heard
}

fn any_case() -> impl Strategy<Value = (Dialect, Dialect, Vec<Event>, Gaps)> {
    let pairs: Vec<_> = super::pairs().filter(|(from, to)| from != to).collect();
    prop::sample::select(pairs).prop_flat_map(|(from, to)| {
        (any_answer(from), any_gaps(from)).prop_map(move |(events, gaps)| (from, to, events, gaps))
    })
}

proptest! {
    /// What an upstream leaves out, or tells late, changes nothing of what the caller hears.
    #[test]
    fn gaps_change_no_converted_answer((from, to, events, gaps) in any_case()) {
        let stream = upstream_stream(from, &events);
        let mut complete = heard(from, to, std::str::from_utf8(&stream).unwrap()).unwrap();
        let stream = with_gaps(&stream, &gaps);
        let mut found = heard(from, to, &stream);
        if gaps.late.is_some() {
            found = found.map(without_signatures);
            complete = without_signatures(complete);
        }
        prop_assert_eq!(found.as_ref(), Ok(&complete), "{} to {}\n{}", from, to, stream);
    }
}

/// A stream that a real server has sent.
#[test]
fn a_stream_of_llama_cpp_is_two_calls() {
    let stream = include_str!("../../../fixtures/upstreams/llamacpp-responses-two-calls.sse");
    for to in Dialect::ALL {
        let heard = heard(Dialect::Responses, to, stream).unwrap();
        assert_eq!(heard.text, "Let me look.", "{to}");
        let cities: Vec<_> = heard
            .calls
            .iter()
            .map(|call| &call.arguments["city"])
            .collect();
        assert_eq!(cities, ["Paris", "Rome"], "{to}");
        assert_eq!(heard.usage, Some((477, 10)), "{to}");
    }
}

/// The members of the interaction stand in the last event itself, and usage may be missing.
#[test]
fn a_flat_end_of_an_interaction_is_understood() {
    let begin = concat!(
        "data: {\"event_type\":\"step.start\",\"index\":0,\"step\":{\"type\":\"model_output\"}}\n\n",
        "data: {\"event_type\":\"step.delta\",\"index\":0,\"delta\":{\"type\":\"text\",\"text\":\"Hello you\"}}\n\n",
    );
    let usage = r#","usage":{"total_input_tokens":9,"total_output_tokens":5}"#;
    for (rest, expected) in [
        (usage, Some((9, 5))),
        // What the call is charged by is told: the input of its admission, the output as counted.
        ("", Some((40, 3))),
        (r#","status":"completed","id":"v1_x""#, Some((40, 3))),
    ] {
        let end = format!("data: {{\"event_type\":\"interaction.completed\"{rest}}}\n\n");
        for to in Dialect::ALL {
            let heard = heard(Dialect::Interactions, to, &(begin.to_owned() + &end)).unwrap();
            assert_eq!(heard.text, "Hello you", "{to}");
            assert_eq!(heard.usage, expected, "{to}");
        }
    }
    let failed = r#"data: {"event_type":"interaction.completed","status":"failed"}"#;
    let stream = format!("{begin}{failed}\n\n");
    let relayed = relay(Dialect::Interactions, Dialect::Chat, stream.as_bytes(), &[]);
    assert!(relayed.result.is_err());
}

/// The stream as a caller of the same dialect gets it.
fn relay_native(dialect: Dialect, stream: &str) -> String {
    let mut rewriter = Rewriter::new(dialect, identity(dialect), true);
    let mut out = ByteQueue::new();
    let chunk = Bytes::copy_from_slice(stream.as_bytes());
    rewriter.push(chunk, &mut out).unwrap();
    rewriter.end(&mut out).unwrap();
    String::from_utf8(out.into_bytes().to_vec()).unwrap()
}

/// The name and the data of each event.
fn frames(stream: &str) -> Vec<(&str, Value)> {
    stream
        .split_terminator("\n\n")
        .map(|frame| {
            let (name, data) = frame.split_once("data: ").unwrap();
            let value = serde_json::from_str(data).unwrap_or_else(|_| json!(data));
            (name, value)
        })
        .collect()
}

/// The members that are filled in on a route whose upstream speaks the caller's dialect.
fn filled(dialect: Dialect) -> Vec<&'static str> {
    match dialect {
        Dialect::Responses => vec![
            "sequence_number",
            "output_index",
            "item_id",
            "content_index",
            "summary_index",
            "created_at",
            "store",
        ],
        Dialect::Messages | Dialect::Interactions => vec!["index"],
        Dialect::Generate => vec!["modelVersion", "responseId"],
        Dialect::Chat => vec!["created"],
    }
}

fn any_native_case() -> impl Strategy<Value = (Dialect, Vec<Event>, Gaps)> {
    prop::sample::select(Dialect::ALL.to_vec()).prop_flat_map(|dialect| {
        let members = filled(dialect);
        let dropped = prop::sample::subsequence(members.clone(), 0..=members.len());
        let names = match dialect {
            Dialect::Chat | Dialect::Generate => vec![Names::Both],
            _ => vec![Names::Both, Names::Data, Names::Events],
        };
        let wrong = [
            None,
            Some(json!(null)),
            Some(json!(-1)),
            Some(json!({"a": 1})),
        ];
        let wrong = prop::sample::select(wrong.to_vec());
        let gaps =
            (prop::sample::select(names), dropped, wrong).prop_map(|(names, dropped, wrong)| {
                Gaps {
                    names,
                    dropped,
                    wrong,
                    late: None,
                }
            });
        (any_answer(dialect), gaps).prop_map(move |(events, gaps)| (dialect, events, gaps))
    })
}

proptest! {
    /// A complete stream passes as it is, and one with gaps as if it were complete.
    #[test]
    fn gaps_are_filled_on_native_routes((dialect, events, gaps) in any_native_case()) {
        let stream = String::from_utf8(upstream_stream(dialect, &events)).unwrap();
        let complete = relay_native(dialect, &stream);
        let theirs = echo(dialect, "theirs", "up-2026");
        let ours = stream
            .replace(&*theirs.id, &identity(dialect).id)
            .replace("\"up-2026\"", &format!("\"{MODEL}\""));
        prop_assert_eq!(&complete, &ours);
        let stream = with_gaps(stream.as_bytes(), &gaps);
        let repaired = relay_native(dialect, &stream);
        prop_assert_eq!(frames(&repaired), frames(&complete), "{}\n{}", dialect, stream);
    }
}

#[test]
fn a_stream_of_llama_cpp_is_numbered_for_its_own_callers() {
    let stream = include_str!("../../../fixtures/upstreams/llamacpp-responses-two-calls.sse");
    let stream = relay_native(Dialect::Responses, stream);
    let mut items = Vec::new();
    for (number, (name, data)) in frames(&stream).into_iter().enumerate() {
        assert_eq!(data["sequence_number"], number, "{data}");
        assert_eq!(
            name.trim_end(),
            format!("event: {}", data["type"].as_str().unwrap())
        );
        if data["response"].is_object() {
            let response = &data["response"];
            assert!(
                response["output"].is_array() && response["created_at"].is_u64(),
                "{data}"
            );
            assert_eq!(
                (&response["model"], &response["store"]),
                (&json!(MODEL), &json!(false))
            );
            continue;
        }
        let id = data.get("item_id").unwrap_or(&data["item"]["id"]).clone();
        if data["type"] == "response.output_item.added" {
            items.push(id.clone());
        }
        let index = items.iter().position(|item| *item == id);
        assert_eq!(
            data["output_index"].as_u64(),
            index.map(|index| index as u64),
            "{data}"
        );
        if data["type"].as_str().unwrap().contains("_text.") {
            assert_eq!(data["content_index"], 0, "{data}");
        }
    }
    assert_eq!(items.len(), 3);
}

#[test]
fn the_members_of_a_flat_interaction_get_their_object() {
    for (flat, expected) in [
        (
            r#"{"id":"v1_x","event_type":"interaction.completed","status":"completed","model":"up"}"#,
            r#"{"event_type":"interaction.completed","interaction":{"id":"int_ours","status":"completed","model":"maker/m"}}"#,
        ),
        (
            r#"{"event_id":"7","event_type":"interaction.completed"}"#,
            r#"{"event_id":"7","event_type":"interaction.completed","interaction":{"id":"int_ours","model":"maker/m","status":"completed"}}"#,
        ),
        (
            r#"{"event_type":"interaction.completed","usage":{"total_input_tokens":9,"total_output_tokens":5}}"#,
            r#"{"event_type":"interaction.completed","interaction":{"id":"int_ours","model":"maker/m","status":"completed","usage":{"total_input_tokens":9,"total_output_tokens":5}}}"#,
        ),
        // Members of the event and members that name the server stand side by side, in either order.
        (
            r#"{"event_type":"interaction.completed","provider":"Acme","id":"x","status":"completed","model":"up"}"#,
            r#"{"event_type":"interaction.completed","interaction":{"id":"int_ours","status":"completed","model":"maker/m"}}"#,
        ),
        (
            r#"{"provider":"Acme","event_type":"interaction.completed","request_id":"r"}"#,
            r#"{"event_type":"interaction.completed","interaction":{"id":"int_ours","model":"maker/m","status":"completed"}}"#,
        ),
    ] {
        let stream = format!("event: interaction.completed\ndata: {flat}\n\n");
        let expected = format!("event: interaction.completed\ndata: {expected}\n\n");
        assert_eq!(relay_native(Dialect::Interactions, &stream), expected);
    }
}

/// Routers and vendors say in members of their own who served an answer.
#[test]
fn members_that_name_the_server_are_taken_out() {
    let answer = r#"{"provider":"Acme","id":"x","created":7,"model":"up","x_groq":{"id":"req_1"},"choices":[]}"#;
    let ours = r#"{"id":"chatcmpl_ours","created":7,"model":"maker/m","choices":[]}"#;
    let whole = rewrite_answer(Dialect::Chat, Bytes::from(answer), &identity(Dialect::Chat));
    assert_eq!(whole.unwrap().pieces.into_bytes(), ours.as_bytes());
    // The second event begins as the first, and the third does not say it.
    let plain = r#"{"id":"x","created":7,"model":"up","choices":[]}"#;
    let stream = |events: [&str; 3]| {
        let events = events.map(|event| format!("data: {event}\n\n"));
        events.concat() + "data: [DONE]\n\n"
    };
    let relayed = relay_native(Dialect::Chat, &stream([answer, answer, plain]));
    assert_eq!(relayed, stream([ours, ours, ours]));
    let late = plain.replace(r#","choices""#, r#","provider_name":"Acme","choices""#);
    let relayed = relay_native(Dialect::Chat, &stream([plain, &late, plain]));
    assert_eq!(relayed, stream([ours, ours, ours]));
    let event = r#"{"type":"response.completed","sequence_number":0,"response":{"id":"x","created_at":7,"model":"up","store":false,"output":[],"provider":"Acme"}}"#;
    let event = format!("event: response.completed\ndata: {event}\n\n");
    let relayed = relay_native(Dialect::Responses, &event);
    assert!(relayed.ends_with("\"output\":[]}}\n\n"), "{relayed}");
    // An envelope of which nothing stays is filled with our identity.
    let event =
        r#"{"type":"response.completed","sequence_number":0,"response":{"provider":"Acme"}}"#;
    let relayed = relay_native(Dialect::Responses, &format!("data: {event}\n\n"));
    let [(_, data)] = frames(&relayed).try_into().unwrap();
    assert_eq!(data["response"]["model"], MODEL);
    assert!(!relayed.contains("Acme"), "{relayed}");
}

/// Routers say it beside the message and in it, also where they know nothing.
#[test]
fn choices_do_not_name_the_server() {
    let choice = |message: &str| {
        format!(
            r#"{{"index":0,"native_finish_reason":"STOP","{message}":{{"provider_metadata":{{"a":1}},"role":"assistant","content":"Hi","provider":null}},"finish_reason":"stop"}}"#
        )
    };
    let ours = |message: &str| {
        format!(
            r#"{{"index":0,"{message}":{{"role":"assistant","content":"Hi"}},"finish_reason":"stop"}}"#
        )
    };
    let object = |choices: &str| {
        format!(r#"{{"id":"chatcmpl_ours","created":7,"model":"maker/m","choices":[{choices}]}}"#)
    };
    let answer = object(&[choice("message"), choice("message")].join(","));
    let whole = rewrite_answer(Dialect::Chat, Bytes::from(answer), &identity(Dialect::Chat));
    let expected = object(&[ours("message"), ours("message")].join(","));
    assert_eq!(whole.unwrap().pieces.into_bytes(), expected.as_bytes());
    let stream = |choice: &str| {
        let plain = object(r#"{"index":0,"delta":{"content":"Oh"}}"#);
        let event = object(choice);
        format!("data: {plain}\n\ndata: {event}\n\ndata: {plain}\n\ndata: [DONE]\n\n")
    };
    let relayed = relay_native(Dialect::Chat, &stream(&choice("delta")));
    assert_eq!(relayed, stream(&ours("delta")));
    // What names the server is not output.
    let empty = object(r#"{"index":0,"delta":{"provider_metadata":{"a":1}}}"#);
    let mut rewriter = Rewriter::new(Dialect::Chat, identity(Dialect::Chat), true);
    let event = Bytes::from(format!("data: {empty}\n\n"));
    rewriter.push(event, &mut ByteQueue::new()).unwrap();
    assert!(!rewriter.seen().content);
}

#[test]
fn a_response_that_begins_has_a_list_of_items() {
    for output in ["", r#","output":null"#, r#","output":{}"#] {
        let begin = format!(
            r#"{{"type":"response.created","sequence_number":0,"response":{{"id":"x","created_at":7,"model":"up","store":false{output}}}}}"#
        );
        let end = r#"{"type":"response.completed","sequence_number":1,"response":{"id":"x","created_at":7,"model":"up","store":false,"output":[]}}"#;
        let stream = [begin.as_str(), end].map(|data| format!("data: {data}\n\n"));
        let relayed = relay_native(Dialect::Responses, &stream.concat());
        assert_eq!(
            frames(&relayed)[0].1["response"]["output"],
            json!([]),
            "{relayed}"
        );
        assert_eq!(relayed.matches("\"output\"").count(), 2, "{relayed}");
    }
}

/// Numbers go on where the upstream says something else.
#[test]
fn a_sequence_number_of_another_type_does_not_begin_the_sequence_anew() {
    let event = |sequence: &str| {
        format!(
            "data: {{\"type\":\"response.in_progress\",\"sequence_number\":{sequence},\"response\":{{\"output\":[]}}}}\n\n"
        )
    };
    let end = r#"{"type":"response.completed","response":{"output":[]}}"#;
    let stream = [
        event("4"),
        event("\"x\""),
        event("null"),
        format!("data: {end}\n\n"),
    ];
    let relayed = relay_native(Dialect::Responses, &stream.concat());
    let numbers: Vec<_> = frames(&relayed)
        .into_iter()
        .map(|(_, data)| data["sequence_number"].clone())
        .collect();
    assert_eq!(numbers, [4, 5, 6, 7]);
}

/// As llama.cpp's server tells reasoning: its text comes without the event that begins its part.
#[test]
fn a_part_of_reasoning_begins_before_its_text() {
    let stream = [
        r#"{"type":"response.created","response":{"id":"x","object":"response","status":"in_progress"}}"#,
        r#"{"type":"response.output_item.added","item":{"id":"rs_1","summary":[],"type":"reasoning","content":[],"encrypted_content":"","status":"in_progress"}}"#,
        r#"{"type":"response.reasoning_text.delta","delta":"Th","item_id":"rs_1"}"#,
        r#"{"type":"response.reasoning_text.delta","delta":"ink","item_id":"rs_1"}"#,
        r#"{"type":"response.output_item.added","item":{"content":[],"id":"msg_1","role":"assistant","status":"in_progress","type":"message"}}"#,
        r#"{"type":"response.content_part.added","item_id":"msg_1","part":{"type":"output_text","text":""}}"#,
        r#"{"type":"response.output_text.delta","item_id":"msg_1","delta":"Hi"}"#,
        r#"{"type":"response.completed","response":{"id":"x","model":"up","output":[]}}"#,
    ];
    let stream = stream.map(|data| format!("data: {data}\n\n")).concat();
    let relayed = relay_native(Dialect::Responses, &stream);
    let frames = frames(&relayed);
    let kinds: Vec<_> = frames
        .iter()
        .map(|(_, data)| data["type"].as_str().unwrap())
        .collect();
    let begins = kinds
        .iter()
        .position(|kind| *kind == "response.content_part.added")
        .unwrap();
    assert_eq!(kinds[begins + 1], "response.reasoning_text.delta");
    assert_eq!(kinds.len(), 9, "{relayed}");
    let (name, begin) = &frames[begins];
    assert_eq!(name.trim_end(), "event: response.content_part.added");
    assert_eq!(
        *begin,
        json!({"type": "response.content_part.added", "sequence_number": 2, "item_id": "rs_1", "output_index": 0, "content_index": 0, "part": {"type": "reasoning_text", "text": ""}})
    );
    for (number, (_, data)) in frames.iter().enumerate() {
        assert_eq!(data["sequence_number"], number, "{relayed}");
    }
    // A stream that begins its parts stays as it is, also where items overlap.
    let complete = [
        r#"{"type":"response.output_item.added","sequence_number":0,"output_index":0,"item":{"id":"rs_1","type":"reasoning"}}"#,
        r#"{"type":"response.content_part.added","sequence_number":1,"item_id":"rs_1","output_index":0,"content_index":0,"part":{"type":"reasoning_text","text":""}}"#,
        r#"{"type":"response.output_item.added","sequence_number":2,"output_index":1,"item":{"id":"msg_1","type":"message"}}"#,
        r#"{"delta":"Think","content_index":0,"item_id":"rs_1","output_index":0,"sequence_number":3,"type":"response.reasoning_text.delta"}"#,
        r#"{"type":"response.completed","sequence_number":4,"response":{"id":"resp_ours","created_at":7,"model":"maker/m","store":false,"output":[]}}"#,
    ];
    let complete = complete.map(|data| {
        let value: Value = serde_json::from_str(data).unwrap();
        let kind = value["type"].as_str().unwrap();
        format!("event: {kind}\ndata: {data}\n\n")
    });
    let complete = complete.concat();
    assert_eq!(relay_native(Dialect::Responses, &complete), complete);
}

/// The first item had no gap, so nothing was noted of it.
#[test]
fn a_gap_after_complete_items_is_filled_for_the_newest_item() {
    let stream = [
        r#"{"type":"response.output_item.added","sequence_number":0,"output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[]}}"#,
        r#"{"type":"response.output_item.done","sequence_number":1,"output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[]}}"#,
        r#"{"type":"response.output_item.added","sequence_number":2,"output_index":1,"item":{"type":"message","id":"msg_1","role":"assistant","content":[]}}"#,
        r#"{"type":"response.output_text.delta","sequence_number":3,"item_id":"msg_1","content_index":0,"delta":"Hi"}"#,
        r#"{"type":"response.completed","sequence_number":4,"response":{"id":"x","created_at":7,"model":"up","output":[]}}"#,
    ];
    let stream = stream.map(|data| format!("data: {data}\n\n")).concat();
    let relayed = relay_native(Dialect::Responses, &stream);
    assert_eq!(frames(&relayed)[3].1["output_index"], 1, "{relayed}");
}
