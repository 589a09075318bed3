//! Properties of chat answers that are read into the common form.

use proptest::prelude::*;
use protocol::canon::Event;
use protocol::chat;
use serde_json::{Value, json};

use super::reading::{DONE, build_response, call, delta, finish, more, read_stream, stream};

/// A message with any members, and the sizes of the pieces into which its texts are cut.
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

/// Deltas that add up to a message, with interleaved calls.
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
        prop_assert_eq!(build_response(events), whole);
    }

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
