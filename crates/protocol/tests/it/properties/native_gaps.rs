//! The gaps of `gaps.rs` on native routes, where they are filled in for clients of the same
//! dialect.

use bytes::Bytes;
use proptest::prelude::*;
use protocol::canon::Event;
use protocol::native::{Rewriter, rewrite_answer};
use protocol::{ByteQueue, Dialect};
use serde_json::{Value, json};

use super::gaps::{Gaps, Names, with_gaps};
use super::streams::{any_answer, identity};
use super::{MODEL, context, upstream_stream};

/// The stream for a client of the same dialect.
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

/// The members that are filled in on native routes.
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
        Dialect::Chat => vec!["created", "index"],
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
    /// A complete stream is relayed unchanged. A stream with gaps is relayed as if it were
    /// complete.
    #[test]
    fn gaps_are_filled_on_native_routes((dialect, events, gaps) in any_native_case()) {
        let stream = String::from_utf8(upstream_stream(dialect, &events)).unwrap();
        let complete = relay_native(dialect, &stream);
        let theirs = context(dialect, "theirs", "up-2026");
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
        // Members of the event and members that name the server are adjacent, in either order.
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

/// Routers and vendors name the server in members of their own.
#[test]
fn members_that_name_the_server_are_taken_out() {
    let answer = r#"{"provider":"Acme","id":"x","created":7,"model":"up","x_groq":{"id":"req_1"},"choices":[]}"#;
    let ours = r#"{"id":"chatcmpl_ours","created":7,"model":"maker/m","choices":[]}"#;
    let whole = rewrite_answer(Dialect::Chat, Bytes::from(answer), &identity(Dialect::Chat));
    assert_eq!(whole.unwrap().pieces.into_bytes(), ours.as_bytes());
    // The second event starts like the first one. The third does not.
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
    // An envelope that becomes empty is filled with our identity.
    let event =
        r#"{"type":"response.completed","sequence_number":0,"response":{"provider":"Acme"}}"#;
    let relayed = relay_native(Dialect::Responses, &format!("data: {event}\n\n"));
    let [(_, data)] = frames(&relayed).try_into().unwrap();
    assert_eq!(data["response"]["model"], MODEL);
    assert!(!relayed.contains("Acme"), "{relayed}");
}

/// Routers name the server next to the message and inside it, even if the value is empty.
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
    // A delta that only names the server is not content.
    let empty = object(r#"{"index":0,"delta":{"provider_metadata":{"a":1}}}"#);
    let mut rewriter = Rewriter::new(Dialect::Chat, identity(Dialect::Chat), true);
    let event = Bytes::from(format!("data: {empty}\n\n"));
    rewriter.push(event, &mut ByteQueue::new()).unwrap();
    assert!(!rewriter.summary().content);
}

/// Some servers stream several choices at once and number no tool call.
#[test]
fn each_choice_numbers_its_own_tool_calls() {
    let chunk = |choices: &str| {
        format!("data: {{\"id\":\"x\",\"created\":7,\"model\":\"up\",\"choices\":[{choices}]}}\n\n")
    };
    let call =
        |id: &str| format!(r#"{{"tool_calls":[{{"id":"{id}","function":{{"name":"f"}}}}]}}"#);
    let piece = r#"{"tool_calls":[{"function":{"arguments":"{}"}}]}"#;
    let stream = [
        // The index of a choice may come after its delta.
        chunk(&format!(
            r#"{{"index":0,"delta":{}}},{{"delta":{},"index":1}}"#,
            call("a"),
            call("b")
        )),
        chunk(&format!(r#"{{"index":1,"delta":{}}}"#, call("c"))),
        chunk(&format!(r#"{{"index":0,"delta":{piece}}}"#)),
        chunk(&format!(r#"{{"index":1,"delta":{piece}}}"#)),
        chunk(&format!(r#"{{"index":0,"delta":{}}}"#, call("d"))),
        chunk(&format!(r#"{{"index":1,"delta":{}}}"#, call("b"))),
        "data: [DONE]\n\n".to_owned(),
    ];
    let relayed = relay_native(Dialect::Chat, &stream.concat());
    let numbers: Vec<(u64, u64)> = frames(&relayed)
        .iter()
        .filter_map(|(_, data)| data["choices"].as_array())
        .flatten()
        .map(|choice| {
            let call = &choice["delta"]["tool_calls"][0];
            let numbers = (choice["index"].as_u64(), call["index"].as_u64());
            (numbers.0.unwrap(), numbers.1.unwrap())
        })
        .collect();
    let expected = [(0, 0), (1, 0), (1, 1), (0, 0), (1, 1), (0, 1), (1, 0)];
    assert_eq!(numbers, expected, "{relayed}");
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

/// llama.cpp's server sends the text of reasoning without the event that starts its part.
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
    // A stream that starts its parts is unchanged, even if items overlap.
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

/// The first item has no gap, so it was not recorded.
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
